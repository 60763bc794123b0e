-- brim.timeline.events: the events of a run that people look for, repeated ones as one: a full disk
-- refuses thousands of times. Called by plot and report. Pure. Times are seconds.
local M = {}

-- Kinds that mean something went wrong, or was to be expected near the end; others tell how a run
-- was steered.
local SHOWN <const> = { stall = true, collapse = true, refused = true, error = true,
  resumed = true }

---@class brim.EventGroup
---@field event table the first of them
---@field n integer how many
---@field last_s number when the last came

---Group the events of a run: those alike (kind, state, code, operation) within one phase are one.
---@param run brim.TimelineData
---@return brim.EventGroup[] groups in the order of their first event
---@return integer others events of further kinds, left out
function M.groups(run)
  local list, known, others = {}, {}, 0
  for _, event in ipairs(run.events) do
    if not SHOWN[event.kind] then
      others = others + 1
    else
      local key = table.concat({ event.kind, tostring(event.state), tostring(event.code),
        tostring(event.op), tostring(event.phase) }, "\0")
      local group = known[key]
      -- A stall or collapse and its end each count on their own.
      if not group or event.state then
        group = { event = event, n = 0, last_s = event.t_s }
        known[key], list[#list + 1] = group, group
      end
      group.n, group.last_s = group.n + 1, event.t_s
    end
  end
  return list, others
end

return M
