-- brim.experiment.cells: the directory of an experiment: a cell for each variant and seed, with its
-- options, timeline and result. A result is written last and at once, so what a crash left half
-- done is known and done again. Called by brim.experiment.
local errors = require "brim.error"
local json = require "brim.json"
local process = require "brim.process"

local M = {}

---@class brim.ExperimentCell
---@field name string
---@field variant brim.ExperimentVariant
---@field seed integer
---@field dir string
---@field timeline string path
---@field options string JSON of what was asked
---@field result? table of a finished cell

local function failed(op, path, why)
  return errors.new { code = why:find "No space" and "ENOSPC" or "EIO", op = op, path = path,
    message = ("%s: %s"):format(path, why) }
end

local function slurp(path)
  local file <close> = io.open(path)
  return file and file:read "a"
end

---Write a file so that it is there whole or not at all, even after a power failure.
---@param path string
---@param text string
---@return true? ok
---@return brim.Error? err
function M.write(path, text)
  local new = path .. ".new"
  local file, why = io.open(new, "wb")
  local ok = file and file:write(text)
  local closed, reason = nil, nil
  if file then
    closed, reason = file:close()
  end
  if not ok or not closed then
    return nil, failed("write", path, why or reason or "could not be written")
  end
  ok, why = process.run("sync", "--", new)
  if ok then
    ok, why = os.rename(new, path)
  end
  return ok and true or nil, not ok and failed("write", path, why) or nil
end

-- Names become those of directories.
local function plain_name(name)
  return (name:gsub("[^%w%-_.=]", "_"))
end

---Make the cells, seed by seed, so that what changes on the host meets all variants.
---@param dir string of the experiment
---@param variants brim.ExperimentVariant[]
---@param seeds integer[]
---@return brim.ExperimentCell[]
function M.list(dir, variants, seeds)
  local cells = {}
  for _, seed in ipairs(seeds) do
    for _, v in ipairs(variants) do
      local name = ("%s-%d"):format(plain_name(v.name), seed)
      local place = ("%s/%s"):format(dir, name)
      cells[#cells + 1] = { name = name, variant = v, seed = seed, dir = place,
        timeline = place .. "/timeline.jsonl",
        options = json.encode { variant = v, seed = seed } }
    end
  end
  return cells
end

---Is what has a directory's name none of ours? An empty directory is taken away.
---@param dir string
---@param mark string file or directory that ours have
---@return boolean
function M.is_foreign(dir, mark)
  return process.run("test", "-e", dir) and not process.run("test", "-e", dir .. "/" .. mark)
    and not process.run("rmdir", "--", dir)
end

---Take what finished before into the cells.
---@param cells brim.ExperimentCell[]
---@param is_resumed boolean were they to be expected?
---@return integer? finished
---@return brim.Error? err
function M.take(cells, is_resumed)
  local finished = 0
  for _, cell in ipairs(cells) do
    local options = slurp(cell.dir .. "/options.json")
    if M.is_foreign(cell.dir, "options.json") then
      return nil, errors.usage("%s is there and no cell: choose another directory", cell.dir)
    elseif options and not is_resumed then
      return nil, errors.usage("%s is there already: resume, or choose another directory", cell.dir)
    elseif options and options ~= cell.options then
      return nil, errors.usage("%s was begun with other options: choose another directory",
        cell.dir)
    end
    local result = options and json.decode(slurp(cell.dir .. "/result.json") or "")
    if type(result) == "table" then
      cell.result, finished = result, finished + 1
    end
  end
  return finished
end

---Begin a cell: its directory, empty but for its options.
---@param cell brim.ExperimentCell
---@return true? ok
---@return brim.Error? err
function M.begin(cell)
  local ok, why = process.run("rm", "-rf", "--", cell.dir)
  if ok then
    ok, why = process.run("mkdir", "-p", "--", cell.dir)
  end
  if not ok then
    return nil, failed("mkdir", cell.dir, why)
  end
  return M.write(cell.dir .. "/options.json", cell.options)
end

---End a cell. Its timeline is on disk before its result is.
---@param cell brim.ExperimentCell
---@param result table
---@return true? ok
---@return brim.Error? err
function M.finish(cell, result)
  local ok, why = process.run("sync", "--", cell.timeline)
  if not ok then
    return nil, failed("sync", cell.timeline, why)
  end
  local err
  ok, err = M.write(cell.dir .. "/result.json", json.encode(result))
  cell.result = ok and result or nil
  return ok, err
end

return M
