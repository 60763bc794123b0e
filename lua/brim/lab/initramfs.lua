-- brim.lab.initramfs: what a guest boots into: busybox, the modules its kernel needs for F2FS, brim
-- and its libraries, and init. Made on the fly, kept by content in a cache. Called by lab.
local core = require "brim.core"
local errors = require "brim.error"
local boot = require "brim.lab.boot"
local kernels = require "brim.lab.kernels"
local process = require "brim.process"

local M = {}

local KEEP_DAYS <const> = 7 -- a file of the cache that was not used for so long goes
local BUSYBOX_PLACES <const> = { "/bin/busybox", "/usr/bin/busybox" }

-- ---------------------------------------------------------------------- cpio

-- The "newc" format: headers of hexadecimal digits, names and contents padded to four bytes
-- (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel).
local function pad(n)
  return ("\0"):rep(-n % 4)
end

local function entry(number, name, mode, content)
  local header = ("070701" .. ("%08X"):rep(13)):format(number, mode, 0, 0, 1, 0, #content, 0, 0, 0,
    0, #name + 1, 0)
  return table.concat { header, name, "\0", pad(#header + #name + 1), content, pad(#content) }
end

-- Directories come before what is in them.
local function archive(files)
  local parts, made = {}, {}
  local function add(name, mode, content)
    parts[#parts + 1] = entry(#parts + 1, name, mode, content)
  end
  for _, f in ipairs(files) do
    for at in f.name:gmatch "()/" do
      local dir = f.name:sub(1, at - 1)
      if not made[dir] then
        made[dir] = true
        add(dir, 0x41ed, "") -- 040755
      end
    end
    if f.content then
      add(f.name, 0x81ed, f.content) -- 0100755
    end
  end
  add("TRAILER!!!", 0, "")
  return table.concat(parts)
end

-- --------------------------------------------------------------------- pieces

local function busybox()
  for _, path in ipairs(BUSYBOX_PLACES) do
    if process.run("test", "-x", path) then
      local _, said = process.run("ldd", path)
      if said:find "not a dynamic executable" or said:find "statically linked" then
        return path
      end
    end
  end
  return nil, errors.skip "no statically linked busybox here (Debian: apt install busybox-static)"
end

local function find_brim()
  local named = os.getenv "BRIM_LAB_EXECUTABLE" or ""
  for _, path in ipairs { named, kernels.home() .. "/brim" } do
    if process.run("test", "-x", path) then
      return path
    end
  end
  local _, path = process.run("sh", "-c", "command -v brim")
  return path:find "^/" and path or nil,
    errors.skip "no brim executable for the guest: `make exe`, or name it in BRIM_LAB_EXECUTABLE"
end

-- The loader and the libraries of a program, under the names it looks for.
local function libraries(path, add)
  local _, said = process.run("ldd", path)
  for line in said:gmatch "[^\n]+" do
    local lib = line:match "=> (/%S+)" or line:match "^%s*(/%S+) %("
    if lib then
      add(lib:sub(2), lib)
    elseif line:find "not found" then
      return nil, errors.skip("%s cannot run in a guest: %s", path, (line:gsub("^%s+", "")))
    end
  end
  return true
end

-- f2fs and, before it, what it asks the crypto layer for by name and modules.dep therefore lacks:
-- crc32, in crc32_generic.ko (6.1, 6.12) or crc32-cryptoapi.ko (7.2).
local function modules(kernel, add)
  if not kernel.modules then
    return
  end
  local _, found = process.run("find", kernel.modules .. "/", "-name", "crc32*.ko", "-o", "-name",
    "f2fs.ko")
  local order = {}
  for path in found:gmatch "[^\n]+" do
    order[#order + 1] = path
  end
  table.sort(order, function(a, b)
    local fa, fb = a:find "/f2fs%.ko$" ~= nil, b:find "/f2fs%.ko$" ~= nil
    return fa == fb and a < b or fb and not fa
  end)
  for i, path in ipairs(order) do
    add(("modules/%d-%s"):format(i, path:match "[^/]*$"), path)
  end
end

-- All files as { name, path } or { name, content }.
local function contents(kernel)
  local box, brim, ok, err
  box, err = busybox()
  if not box then
    return nil, err
  end
  brim, err = find_brim()
  if not brim then
    return nil, err
  end
  local files = {}
  local function add(name, path)
    files[#files + 1] = { name = name, path = path }
  end
  add("bin/busybox", box)
  add("bin/brim", brim)
  ok, err = libraries(brim, add)
  if not ok then
    return nil, err
  end
  modules(kernel, add)
  for _, dir in ipairs(boot.DIRECTORIES) do
    files[#files + 1] = { name = dir .. "/" }
  end
  files[#files + 1] = { name = "init", content = boot.SCRIPT }
  files[#files + 1] = { name = "main.lua", content = boot.MAIN }
  return files
end

-- ---------------------------------------------------------------------- cache

---The directory of what can be made again: BRIM_CACHE_DIR, or the user's own.
---@return string
function M.cache_dir()
  local own, home = os.getenv "XDG_CACHE_HOME", os.getenv "HOME"
  local named = os.getenv "BRIM_CACHE_DIR"
  if named and named ~= "" then
    return process.absolute(named)
  elseif own and own ~= "" then
    return own .. "/brim"
  end
  return (home and home ~= "" and home or "/tmp") .. "/.cache/brim"
end

-- The sums of all files, and of their names and the texts.
local function key(files)
  local words, texts = { "sha256sum", "--" }, {}
  for _, f in ipairs(files) do
    words[#words + 1] = f.path
    texts[#texts + 1] = f.name .. "\n" .. (f.content or "")
  end
  local ok, sums = process.run(table.unpack(words))
  if not ok then
    return nil, sums
  end
  local sum
  ok, sum = process.run("sh", "-c", "printf %s \"$0\" | sha256sum", sums .. table.concat(texts))
  return ok and sum:match "^%x+", sum
end

local function read(f)
  if not f.path then
    return true
  end
  local file <close>, why = io.open(f.path, "rb")
  f.content = file and file:read "a"
  return f.content, why
end

local function write(path, files)
  for _, f in ipairs(files) do
    local ok, why = read(f)
    if not ok then
      return nil, why
    end
  end
  local new = ("%s.%d.new"):format(path, core.time_ns())
  local file, why, errno = io.open(new, "wb")
  local ok = file
  if file then
    ok, why, errno = file:write(archive(files))
    local closed, late, late_errno = file:close()
    if not closed then
      ok, why, errno = nil, late, late_errno
    end
  end
  if ok then
    ok, why, errno = os.rename(new, path)
  end
  if not ok then
    os.remove(new)
  end
  return ok, why, errno
end

---Make the initramfs for a kernel, or find it in the cache.
---@param kernel brim.LabKernel
---@return string? path
---@return brim.Error? err
function M.make(kernel)
  local files, err = contents(kernel)
  if not files then
    return nil, err
  end
  local dir = M.cache_dir()
  local ok, why, errno = process.run("mkdir", "-p", "--", dir)
  local sum
  if ok then
    sum, why = key(files)
  end
  local path = ("%s/initramfs-%s.cpio"):format(dir, sum)
  if sum and process.run("test", "-s", path) then
    process.run("touch", "--", path)
    return path
  elseif sum then
    process.run("find", dir, "-maxdepth", "1", "-name", "initramfs-*", "-mtime", "+" .. KEEP_DAYS,
      "-delete")
    ok, why, errno = write(path, files)
    if ok then
      return path
    end
  end
  return nil, errors.new { code = errno == 28 and "ENOSPC" or "EIO", errno = errno or 5,
    op = "initramfs", path = path, message = ("the initramfs cannot be made: %s"):format(why) }
end

return M
