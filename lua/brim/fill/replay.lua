-- brim.fill.replay: brings streams to where a log says they are: for resuming after a crash and for
-- verifying. Called by brim.fill. Nothing is read but the log: streams follow from the seed.
local core = require "brim.core"
local errors = require "brim.error"
local log = require "brim.fill.log"

local M = {}

---@class brim.FillState what a log says
---@field read table of brim.fill.log.read
---@field count integer records that are in force; behind them only what a crash interrupted
---@field window? integer[] operations of each stream that may have been carried out beyond
---@field grant? table the grant that was interrupted
---@field step integer steps of the workload that are over
---@field elapsed_s number of the step that was interrupted
---@field is_over boolean did the run come to its end?

-- Where each stream was at a stop or checkpoint.
local POSITIONS <const> = { stop = true, checkpoint = true }

---Look at a log: what is in force of it. That is what was stable at the last checkpoint; a grant
---since then is done again.
---@param read table of brim.fill.log.read
---@return brim.FillState
function M.state(read)
  local state = { read = read, count = 0, step = 0, elapsed_s = 0, is_over = false }
  local has_failures = false
  for i, r in ipairs(read.records) do
    if r.type == "checkpoint" or r.type == "stop" and has_failures then
      -- What followed a refusal cannot be done again: it depended on it.
      state.count, state.grant, has_failures = i, nil, false
      state.elapsed_s = r.elapsed_s or state.elapsed_s
    elseif r.type == "failure" then
      has_failures = true
    elseif r.type == "step" then
      state.count, state.step, state.elapsed_s = i, r.step, 0
      state.is_over = false
    elseif r.type == "end" then
      state.count, state.is_over = i, not r.stopped
      state.step = r.step or state.step
    elseif r.type == "phase" and not state.grant then
      state.count = i
    elseif r.type == "grant" then
      state.grant = r
    end
  end
  if state.grant then
    state.window = {}
    for k = 1, #state.grant.done do
      state.window[k] = state.grant.ops
    end
  end
  return state
end

local function replay_to(handle, done)
  for k, target in ipairs(done) do
    local ops = target - handle:done(k - 1)
    if ops < 0 then
      return nil, errors.new { code = "EILSEQ", op = "replay",
        message = ("the log goes backwards: stream %d from %d to %d"):format(k - 1,
          handle:done(k - 1), target) }
    elseif ops > 0 then
      local ok, err = handle:replay(k - 1, ops)
      if not ok then
        return nil, err
      end
    end
  end
  return true
end

-- Failures are told before replay passes them; those of a grant follow it and precede its stop.
local function apply(handle, records, from, to)
  for i = from, to do
    local r = records[i]
    local ok, err = true, nil
    if r.type == "phase" then
      ok, err = replay_to(handle, r.done)
      if ok then
        ok, err = handle:phase(r.phase)
      end
    elseif r.type == "failure" then
      ok, err = handle:replay_failure(r)
    elseif POSITIONS[r.type] then
      ok, err = replay_to(handle, r.done)
    end
    if not ok then
      return nil, err
    end
  end
  return true
end

---Bring the streams of a fill to where a log says they are.
---@param handle brim.FillHandle
---@param state brim.FillState
---@return true? ok
---@return brim.Error? err
function M.apply(handle, state)
  return apply(handle, state.read.records, 1, state.count)
end

---Open a path that was filled, streams replayed, nothing changed.
---@param path string
---@return { handle: brim.FillHandle, fileset: brim.Fileset, state: brim.FillState }? opened
---@return brim.Error? err
function M.open(path)
  local read, err = log.read(path)
  if not read then
    return nil, err
  end
  local fileset, why = core.fileset_new(read.header.fileset)
  if not fileset then
    return nil, why
  end
  local handle, reason = core.fill_open(fileset, path, { mode = "none" })
  if not handle then
    return nil, reason
  end
  local state = M.state(read)
  local ok, failed = M.apply(handle, state)
  if not ok then
    handle:close()
    return nil, failed
  end
  return { handle = handle, fileset = fileset, state = state, header = read.header }
end

return M
