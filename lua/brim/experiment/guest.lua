-- brim.experiment.guest: the end of a cell that is inside a guest of the lab: mounts the disk, sets
-- the knobs, runs the workload, leaves the timeline in the guest's results. Called by the script
-- that experiment.places hands to brim.lab.
local guest = require "brim.lab.guest"
local json = require "brim.json"
local knobs = require "brim.knobs"
local probe = require "brim.f2fs.probe"
local work = require "brim.experiment.work"

local M = {}

local MOUNT_POINT <const> = "/mnt"

---Run the cell that the arguments of the lab describe. Raises what goes wrong.
function M.run()
  local a = assert(guest.args())
  local m = assert(guest.mount(guest.disk(1), { at = MOUNT_POINT, options = a.mount_options }))
  local changes = m.changes
  if next(a.knobs) then
    local k = assert(knobs.open(MOUNT_POINT, { keep = true }))
    for _, change in ipairs(assert(k:set(a.knobs))) do
      changes[#changes + 1] = change
    end
    k:close()
  end
  local r = assert(work.run(MOUNT_POINT, a.workload, { seed = a.seed,
    timeline = guest.RESULTS .. "/timeline.jsonl",
    probes = function() return assert(probe.probes(MOUNT_POINT)) end }))
  r.knobs = changes
  local file <close> = assert(io.open(guest.RESULTS .. "/guest.json", "w"))
  assert(file:write(json.encode(r)))
  assert(guest.umount(MOUNT_POINT))
end

return M
