-- brim.f2fs.versions: what the releases of mkfs.f2fs do differently, as data. Called by geometry,
-- options, text and the mkfs recipe; what is not here is alike in all of them.
-- Sources: mkfs.f2fs 1.15.0 and 1.16.0, as Debian 12 and 13 install them. The development branch
-- calls itself 1.16.0, too, and has more: it is none of these.
local M = {}

---@class brim.f2fs.Version
---@field name string as `compat` names it
---@field full string as `mkfs.f2fs -V` prints it
---@field date string behind it
---@field minor integer as superblocks have it
---@field reserve_factor integer sections reserved for each 100 % / overprovision
---@field adds_reserve boolean overprovision is beside the reserve; else it is the larger of the two
---@field buffer_sections integer beyond the overprovision
---@field splits_read_only boolean a read-only image has its nodes in the last zone

---Releases that can be asked for, the oldest first.
---@type brim.f2fs.Version[]
M.LIST = {
  { name = "1.15", full = "1.15.0", minor = 15, date = "2022-05-13", reserve_factor = 2,
    adds_reserve = true, buffer_sections = 0, splits_read_only = false },
  { name = "1.16", full = "1.16.0", minor = 16, date = "2023-04-11", reserve_factor = 1,
    adds_reserve = false, buffer_sections = 2, splits_read_only = true },
}

---The release that holds where none is asked for.
M.DEFAULT = "1.15"

local by_name, names = {}, {}
for i, version in ipairs(M.LIST) do
  by_name[version.name], names[i] = version, version.name
end

---The names of all releases in words, for a message.
M.NAMES = table.concat(names, " or ")

---What a release does.
---@param name? string default DEFAULT
---@return brim.f2fs.Version? version nil: there is none of that name
function M.of(name)
  return by_name[name or M.DEFAULT]
end

return M
