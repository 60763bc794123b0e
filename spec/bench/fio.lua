-- spec.bench.fio: fio as the ceiling: constant buffers of a group's size, at the groups' offsets,
-- through its io_uring engine with what makes that fastest: registered buffers and files,
-- submission in batches.
local json = require "brim.json"
local process = require "process"

local M = {}

---@class bench.FioJob
---@field path string
---@field ios integer how many writes in all
---@field io_bytes integer
---@field stride_bytes integer
---@field first_bytes integer offset of the first, and of the next after the last on the target
---@field size_bytes integer of the target
---@field queue_depth integer
---@field is_direct boolean

---Write with fio; answers the seconds a write took.
---@param job bench.FioJob
---@return { wall_s: number }
function M.write(job)
  local took = process.measure { "fio", "--name=ceiling", "--output-format=json",
    "--ioengine=io_uring", "--fixedbufs", "--registerfiles", "--iodepth_batch=32",
    "--iodepth_batch_complete_max=128", "--fallocate=none", "--allow_file_create=0", "--thread",
    "--filename=" .. job.path, "--direct=" .. (job.is_direct and 1 or 0),
    "--bs=" .. job.io_bytes, ("--rw=write:%d"):format(job.stride_bytes - job.io_bytes),
    "--offset=" .. job.first_bytes, "--size=" .. job.size_bytes - job.first_bytes,
    ("--io_size=%d"):format(job.ios * job.io_bytes), "--iodepth=" .. job.queue_depth }
  local done = assert(json.decode(took.output:match "{.*")).jobs[1]
  local ios, s = done.write.total_ios, done.write.runtime / 1e3
  if ios ~= job.ios then
    error(("fio wrote %d times, not %d"):format(ios, job.ios), 0)
  end
  return { wall_s = s / ios }
end

return M
