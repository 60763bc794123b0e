-- spec.bench.bench_fill: files a second and CPU a file. 4 KiB buffered on XFS in memory against
-- fs_mark and what people fill with; 64 KiB and 1 MiB past the page cache on a disk, through the
-- ring against the best number of threads with plain calls; plans of millions of files.
local json = require "brim.json"
local process = require "process"
local rounds = require "rounds"
local sample = require "sample"
local scratch = require "scratch"
local shell = require "shell"

local M = {}

local SMALL <const> = 16000 -- files of 4 KiB
local PLAIN_THREADS <const> = { 1, 2, 4, 8, 16, 32 }
local DIRECT <const> = { -- size, files, aim
  { "64k", 6000, 3 }, { "1m", 800, 2 },
}
local MiB <const> = 1 << 20

M.lacks = function()
  return rounds.lacks_root() or rounds.lacks { "mkfs.xfs", "fs_mark", "fio", "rsync", "tar" }
end

-- What a fill by brim took.
local function fill(path, mode, streams, size, files)
  local took = process.measure { process.BRIM, "run", "spec/bench/fill_once.lua", path, mode,
    tostring(streams), size, tostring(files) }
  local result = assert(json.decode(took.output))
  return { per_s = result.files / result.elapsed_s, cpu_s = took.cpu_s / result.files,
    rss_bytes = took.peak_rss_bytes, choice = result.choice }
end

-- fs_mark, by its own count of files a second; a directory tree for each thread, files kept.
local function fs_mark(path, threads)
  local argv = { "fs_mark", "-k", "-S", "0", "-s", "4096", "-N", "1000", "-D",
    tostring(SMALL // 1000), "-n", tostring(SMALL // threads), "-t", "1", "-l",
    scratch.path "fs_mark.log" }
  for k = 1, threads do
    argv[#argv + 1] = "-d"
    argv[#argv + 1] = ("%s/%d"):format(path, k)
  end
  local took = process.measure(argv)
  local last = took.output:match("([^\n]*)\n*$")
  local per_s = last:match("^%s*%d+%s+%d+%s+%d+%s+([%d.]+)")
  return { per_s = assert(tonumber(per_s), took.output), cpu_s = took.cpu_s / SMALL }
end

-- Any other program, by the clock on the wall.
local function other(words)
  local took = process.measure(words)
  return { per_s = SMALL / took.wall_s, cpu_s = took.cpu_s / SMALL }
end

local function brim_on(streams)
  return { "brim " .. streams, function(path) return fill(path, "auto", streams, "4k", SMALL) end }
end

local function fs_mark_on(threads)
  return { "fs_mark " .. threads, function(path) return fs_mark(path, threads) end }
end

-- { name, what it does in a directory }, in the order in which they take turns.
local function copiers(source)
  return {
    brim_on(1),
    { "cp -a", function(path) return other { "cp", "-a", source, path .. "/copy" } end },
    { "tar | tar", function(path)
      return other { "sh", "-c", 'tar -C "$0" -cf - . | tar -C "$1" -xf -', source, path }
    end },
    { "rsync -a -W", function(path)
      return other { "rsync", "-a", "-W", "--inplace", source .. "/", path .. "/copy/" }
    end },
    { "fio", function(path)
      return other { "fio", "--name=f", "--directory=" .. path, "--nrfiles=" .. SMALL,
        "--filesize=4k", "--size=" .. SMALL * 4096, "--bs=4k", "--rw=write", "--ioengine=sync",
        "--create_on_open=1", "--openfiles=1", "--file_service_type=sequential" }
    end },
  }
end

-- Runs each in turn, round by round; name -> { per_s = list, cpu_s = list }.
local function take_turns(contestants, count, around)
  local taken = {}
  for _ = 1, count do
    for _, contestant in ipairs(contestants) do
      local name, run = contestant[1], contestant[2]
      local result = around(run)
      taken[name] = taken[name] or { per_s = {}, cpu_s = {} }
      for key, list in pairs(taken[name]) do
        list[#list + 1] = result[key]
      end
    end
  end
  return taken
end

local function small(add)
  local count, few = rounds.of(7), rounds.of(3)
  local source = scratch.directory "/dev/shm"
  fill(source, "plain", 1, "4k", SMALL)
  local image = scratch.directory "/dev/shm" .. "/image"
  local mount = scratch.directory()
  scratch.unmounts(mount)
  -- A new filesystem each time: what others left behind costs nobody anything.
  local function around(run)
    shell.run("rm -f %q && truncate -s 2G %q && mkfs.xfs -q %q && mount -o loop %q %q", image,
      image, image, image, mount)
    local result = run(mount)
    shell.run("umount %q", mount)
    return result
  end
  local taken
  local function row(brim, peer, its_count, aim)
    add { what = ("4 KiB files: %s, %s"):format(brim, peer), unit = "per_s", more = true,
      rounds = its_count, brim = taken[brim].per_s, peer = taken[peer].per_s, aim = aim }
    add { what = ("  CPU a file: %s, %s"):format(brim, peer), unit = "us", rounds = its_count,
      brim = taken[brim].cpu_s, peer = taken[peer].cpu_s, aim = aim }
  end
  taken = take_turns({ brim_on(1), fs_mark_on(1), brim_on(4), fs_mark_on(4) }, count, around)
  row("brim 1", "fs_mark 1", count, 1)
  row("brim 4", "fs_mark 4", count, 1)
  taken = take_turns(copiers(source), few, around)
  for _, peer in ipairs { "cp -a", "tar | tar", "rsync -a -W", "fio" } do
    row("brim 1", peer, few)
  end
end

local function direct_contestants(size, files)
  local list = {}
  local function contestant(name, mode, streams)
    list[#list + 1] = { name, function(path) return fill(path, mode, streams, size, files) end }
  end
  contestant("ring 1", "ring", 1)
  contestant("ring 2", "ring", 2)
  for _, threads in ipairs(PLAIN_THREADS) do
    contestant(("plain %d"):format(threads), "plain", threads)
  end
  return list
end

-- The name of those that begin with `prefix` whose median is highest.
local function best(taken, prefix)
  local found
  for name, values in pairs(taken) do
    if name:find(prefix, 1, true) == 1
      and (not found or sample.median(values.per_s) > sample.median(taken[found].per_s)) then
      found = name
    end
  end
  return found
end

local function direct(add, path, size, files, aim)
  local count = rounds.of(3)
  local taken = take_turns(direct_contestants(size, files), count, function(run)
    local result = run(path)
    shell.run("rm -rf %q/s* && sync -f %q", path, path)
    return result
  end)
  local ring, plain = best(taken, "ring"), best(taken, "plain")
  local function row(brim, peer, its_aim)
    add { what = ("%s direct: %s, %s"):format(size, brim, peer), unit = "per_s", more = true,
      rounds = count, brim = taken[brim].per_s, peer = taken[peer].per_s, aim = its_aim }
  end
  row(ring, plain, aim)
  row("ring 1", "plain 1")
  add { what = ("  CPU a file: %s, %s"):format(ring, plain), unit = "us", rounds = count,
    brim = taken[ring].cpu_s, peer = taken[plain].cpu_s }
end

-- Plans: nothing is done but the counting.
local function plans(add)
  local path = scratch.directory()
  local million = fill(path, "none", 1, "4k", 1000000)
  add { what = "1,000,000 files planned: peak memory", unit = "mib", rounds = 1,
    brim = million.rss_bytes, at_most = 100 * MiB }
  local ten = fill(path, "none", 1, "4k", 10000000)
  add { what = "10,000,000 files planned: time", unit = "s", rounds = 1,
    brim = 10000000 / ten.per_s, at_most = 10 }
end

function M.run(add)
  small(add)
  local image = scratch.directory() .. "/image"
  shell.run("fallocate -l 4G %q && mkfs.xfs -q %q", image, image)
  local path = scratch.mount(scratch.loop(image, true))
  for _, row in ipairs(DIRECT) do
    direct(add, path, table.unpack(row))
  end
  plans(add)
end

return M
