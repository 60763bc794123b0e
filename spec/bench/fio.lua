-- spec.bench.fio: fio as the ceiling: constant buffers of a group's size, at the groups' offsets,
-- through its io_uring engine with what makes that fastest: registered buffers and files,
-- submission in batches.
local json = require "brim.json"
local process = require "process"

local M = {}

---@class bench.FioJob
---@field path string
---@field ios integer how many writes from one end of the target to the other
---@field repeats integer how often it goes through the target
---@field io_bytes integer
---@field stride_bytes integer
---@field first_bytes integer offset of the first
---@field size_bytes integer of the target
---@field queue_depth integer
---@field is_direct boolean

---Write with fio; answers the seconds a write took.
---@param job bench.FioJob
---@return { wall_s: number }
function M.write(job)
  local ios = job.ios * job.repeats
  local took = process.measure { "fio", "--name=ceiling", "--output-format=json",
    "--ioengine=io_uring", "--fixedbufs", "--registerfiles", "--iodepth_batch=32",
    "--iodepth_batch_complete_max=128", "--fallocate=none", "--allow_file_create=0", "--thread",
    "--filename=" .. job.path, "--direct=" .. (job.is_direct and 1 or 0),
    "--bs=" .. job.io_bytes, ("--rw=write:%d"):format(job.stride_bytes - job.io_bytes),
    "--offset=" .. job.first_bytes, "--size=" .. job.size_bytes - job.first_bytes,
    ("--io_size=%d"):format(ios * job.io_bytes), "--end_fsync=1",
    "--iodepth=" .. job.queue_depth }
  local done = assert(json.decode(took.output:match "{.*")).jobs[1]
  if done.write.total_ios ~= ios then
    error(("fio wrote %d times, not %d"):format(done.write.total_ios, ios), 0)
  end
  return { wall_s = done.write.runtime / 1e3 / ios }
end

return M
