-- The shim under user-mode Linux, whose disk is a file: what the guest writes is recorded, and
-- takes as long as the model says. The guest is busybox in an initramfs.
local brim = require "brim"
local helper = require "spec.helper"

local INIT <const> = [[
#!/busybox sh
/busybox mkdir -p /dev /proc
/busybox mount -t devtmpfs dev /dev
/busybox dd if=/dev/zero of=/dev/ubda bs=64k count=16 conv=fsync 2>/dev/null
/busybox dd if=/dev/zero of=/dev/ubda bs=4k count=1 seek=4000 conv=fsync 2>/dev/null
echo DONE
/busybox poweroff -f
]]

local function kernels()
  local list = {}
  for _, path in ipairs { "/usr/bin/linux.uml", "build/oracles/trixie/bin/linux.uml",
    "build/oracles/sid/bin/linux.uml" } do
    if helper.has(path) and select(2, helper.sh("%s --version", helper.quote(path))) == 0 then
      list[#list + 1] = path
    end
  end
  return list
end

local function guest()
  local dir = helper.path("root")
  helper.must("mkdir %s && cp $(command -v busybox) %s/busybox", dir, dir)
  helper.write(dir .. "/init", INIT)
  helper.must("cd %s && chmod +x init && find . | cpio -o -H newc --quiet > ../initrd", dir)
  return dir .. "/../initrd"
end

local DRIVE <const> = { model = "constant", size_bytes = "32m", write_bytes_per_s = 1 << 20 }

-- Boots a kernel that writes to the disk, and replays what it did.
local function write_in(kernel, initrd, disk)
  local trace = helper.path("trace")
  local words = assert(brim.drive(DRIVE):environment(disk, { trace = trace }))
  for k, word in ipairs(words) do
    words[k] = helper.quote(word)
  end
  local out = helper.must("timeout -s KILL 60 env %s %s mem=96M initrd=%s ubd0=%s con=null "
    .. "con0=fd:0,fd:1 root=/dev/ram rdinit=/init quiet </dev/null", table.concat(words, " "),
    kernel, initrd, disk)
  assert.matches("DONE", out)
  local r = assert(brim.drive(DRIVE):replay(trace))
  -- 1 MiB and a block at 1 MiB/s; both runs as they are, in however many calls.
  assert.int(r.stats.bytes.write, (1 << 20) + 4096, kernel)
  assert.int(r.stats.runs.write, 2, kernel)
  assert.truthy(r.recorded_s > 1.0, kernel)
  return r
end

describe("a disk of user-mode Linux", function()
  it("is as slow as the drive, in every kernel there is #slow", function()
    if (os.getenv("SAN") or "") ~= "" then
      pending("a program without the sanitizers cannot load the shim")
    elseif not (helper.has("busybox") and helper.has("cpio")) then
      pending("busybox or cpio is not installed")
    elseif #kernels() == 0 then
      pending("user-mode-linux is not installed")
    end
    local initrd, disk = guest(), helper.path("disk")
    helper.must("truncate -s 32m %s", disk)
    for _, kernel in ipairs(kernels()) do
      local r
      for _ = 1, 3 do -- attempts, where others use the machine too
        r = write_in(kernel, initrd, disk)
        if math.abs(r.recorded_s / r.elapsed_s - 1) < 0.05 then
          break
        end
      end
      assert.truthy(math.abs(r.recorded_s / r.elapsed_s - 1) < 0.05, ("%s: %.3f s asleep, %.3f s "
        .. "replayed"):format(kernel, r.recorded_s, r.elapsed_s))
    end
  end)
end)
