-- brim.xfs.advice: what an XFS will cost its user, known from its superblock. Called by recipes
-- before they do something that takes long.
local inspect = require "brim.xfs.inspect"

local M = {}

-- With one of these the kernel reads AGF and AGI of every group when it mounts, to reserve space
-- for their trees: four reads of a sector each for a group, one at a time (block trace of Linux
-- 6.18), of which a loop device over nbdfuse served 11,000 a second here.
local RESERVING <const> = { "finobt", "rmapbt", "reflink" }
local READS <const>, READS_PER_S <const> = 4, 11000
local WORTH_SAYING_S <const> = 60

---Say what mounting a target will cost where that is more than a minute: nil where it is not, or
---where the target holds no XFS.
---@param target string a device, a file or an image file
---@return string? line
function M.mount(target)
  local ok, fs = pcall(inspect.open, target)
  if not ok or not fs then
    return nil
  end
  local opened <close> = fs
  local has, names = opened.has or {}, {}
  for _, name in ipairs(RESERVING) do
    names[#names + 1] = has[name] and name or nil
  end
  local groups = opened.primary and opened.primary.agcount or 0
  local cost_s = groups * READS // READS_PER_S
  if #names == 0 or cost_s < WORTH_SAYING_S then
    return nil
  end
  return ("the kernel reads the headers of all %d groups before it has mounted this (%s): about "
    .. "%d minutes; with -m finobt=0,rmapbt=0,reflink=0 it would not"):format(groups,
    table.concat(names, ", "), cost_s // 60)
end

return M
