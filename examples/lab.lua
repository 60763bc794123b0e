-- A real F2FS without root: an image is made here, filled in a guest, looked at in both.
-- Run: brim run examples/lab.lua [KERNEL [TO]], like uml-6.1 90%; needs mkfs.f2fs, user-mode-linux
local brim = require "brim"
local lab = brim.lab

if not lab.guest.is_inside() then
  local image = os.tmpname()
  assert(os.execute(("truncate -s 512m %s && mkfs.f2fs -q -f %s >/dev/null"):format(image, image)))
  local r = assert(lab.run { kernel = arg[1] or "uml", script = arg[0], args = { arg[2] or "90%" },
    disks = { image }, on_line = print })
  print(r.ok and "fine" or r.message, "Linux " .. r.kernel, "results in " .. r.results)
  os.remove(image)
  os.exit(r.ok)
end

local disk = lab.guest.disk(1)
local mount = assert(lab.guest.mount(disk))
for _, c in ipairs(mount.changes) do
  print(("as on a large volume: %s %s instead of %s"):format(c.name, c.after, c.before))
end
local w = brim.fill.new { seed = 1, sizes = brim.dist.log_uniform("4k", "4m") }
print((assert(w:fill(arg[1]):run(mount.mount_point, { timeline = "fill.jsonl" }))))
print((assert(lab.guest.f2fs_info(disk, "segment_info"))))
assert(lab.guest.umount())
