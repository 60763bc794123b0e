---@meta
-- brim._meta.plan: plans and image files, as C gives them to Lua.

local core = {}

---Begin a plan; brim.plan is what scripts call.
---@param name string
---@param size_bytes integer|string
---@return userdata? plan_handle
---@return brim.Error? err
function core.plan_new(name, size_bytes) end

---Load an image file as a sealed plan. Runs no code from it.
---@param path string
---@return userdata? plan_handle
---@return brim.Error? err
function core.image_load(path) end

---What every byte of a volume shall be, in phases; brim.plan wraps it.
local plan_handle = {}

---Begin a phase: what follows is written once all before it is on stable storage.
---@param name string
---@return true? ok
---@return brim.Error? err
function plan_handle:phase(name) end

---Make a range zero.
---@param off_bytes integer
---@param len_bytes integer
---@param name string
---@return true? ok
---@return brim.Error? err
function plan_handle:zero(off_bytes, len_bytes, name) end

---Lay the instances of a sealed stamp, which the plan owns from here on.
---@param instances userdata the stamp
---@param off_bytes integer where instance 0 is
---@param stride_bytes integer from one instance to the next
---@param name string
---@param groups boolean they count as groups in reports
---@return true? ok
---@return brim.Error? err
function plan_handle:each(instances, off_bytes, stride_bytes, name, groups) end

---Set a text that travels with the plan; nil clears it.
---@param key string
---@param text? string
---@return true? ok
---@return brim.Error? err
function plan_handle:set_note(key, text) end

---Read a note.
---@param key string
---@return string? text
function plan_handle:note(key) end

---End the building; checks overlaps and the size.
---@return true? ok
---@return brim.Error? err
function plan_handle:seal() end

---Open it for more again; refused while a run or device holds it.
---@return true? ok
---@return brim.Error? err
function plan_handle:unseal() end

---Count what running it amounts to: phases, pieces, groups, writes, write_bytes, zero_ranges,
---zero_bytes, align_bytes.
---@param max_io_bytes integer
---@return table
function plan_handle:totals(max_io_bytes) end

---Describe a piece: phase, name, is_zero, is_groups, off_bytes, len_bytes, stride_bytes, first,
---count, hidden, extents, regions; nil past the last.
---@param i integer from 1
---@return table?
function plan_handle:piece(i) end

---Read what a range of the volume shall be.
---@param off_bytes integer
---@param len_bytes integer at most 1 GiB
---@return string? bytes
---@return brim.Error? err
function plan_handle:read(off_bytes, len_bytes) end

---Save it as an image file of a few KiB.
---@param path string
---@return true? ok
---@return brim.Error? err
function plan_handle:save(path) end

---Tell its name and size.
---@return string name
---@return integer size_bytes
function plan_handle:info() end

---Release it; any number of times.
function plan_handle:close() end
