-- brim.f2fs.options: the mkfs.f2fs command line -> a table of what it asks for. Called by the mkfs
-- recipe. Nothing is opened here. What mkfs.f2fs takes for a number and is none is an error here.
-- Units: as in the names of the result; "sectors" as on the command line.
local errors = require "brim.error"
local ondisk = require "brim.f2fs.ondisk"
local opts = require "brim.opts"
local versions = require "brim.f2fs.versions"

local M = {}

local MOST_DEVICES <const>, MOST_PATH_BYTES <const>, MOST_LABEL_BYTES <const> = 8, 64, 512
local U32 <const> = 0xffffffff

local function fail(fmt, ...)
  return nil, errors.usage(fmt, ...)
end

-- Readers by letter: (values, argument, letter) -> true, or nil and an error. No argument: a flag.
local FLAGS <const> = { q = "quiet", i = "large_nat", r = "fixed_version", f = "force",
  V = "print_version", h = "print_help" }

local READERS = {}

local function number(name, min, max, convert)
  return function(values, argument, letter)
    local n = argument:match "^%d+$" and math.tointeger(tonumber(argument))
    if not n or n < min or n > max then
      return fail("-%s %s: a whole number from %d to %d", letter, argument, min, max)
    end
    if convert then
      n = convert(n)
    end
    values[name] = n
    return true
  end
end

local function text(name)
  return function(values, argument)
    values[name] = argument
    return true
  end
end

local function refused(why)
  return function(_, argument, letter)
    return fail("-%s%s: %s", letter, argument and " " .. argument or "", why)
  end
end

local BRANCH <const> = "releases up to 1.16.0 do not have it, their development branch has"

READERS.a = number("heap", 0, 1, function(n) return n == 1 end)
READERS.d = number("debug_level", 0, 9)
READERS.e = text "cold"
READERS.E = text "hot"
READERS.s = number("section_segments", 1, U32)
READERS.z = number("zone_sections", 1, U32)
READERS.t = number("no_discard", 0, 1, function(n) return n == 0 or nil end)
READERS.w = number("wanted_sector_bytes", 1, 1 << 30)
READERS.U = text "uuid"
READERS.S = refused "sparse mode is Android's; a target on a filesystem is sparse as it is"
READERS.b = refused(BRANCH)
READERS.Z = refused(BRANCH)
local UNARGUED <const> = { m = "brim formats no zoned devices (yet)", H = BRANCH }

function READERS.c(values, argument)
  if #values.more >= MOST_DEVICES - 1 then
    return fail("-c %s: too many devices, at most %d beside the first", argument, MOST_DEVICES - 1)
  elseif #argument > MOST_PATH_BYTES then
    return fail("-c %s: a path is at most %d bytes", argument, MOST_PATH_BYTES)
  elseif argument:find "@" then
    return fail("-c %s: %s", argument, BRANCH)
  end
  table.insert(values.more, argument)
  return true
end

function READERS.l(values, argument)
  if #argument > MOST_LABEL_BYTES then
    return fail("-l: a label is at most %d bytes, this has %d", MOST_LABEL_BYTES, #argument)
  end
  values.label = argument
  return true
end

function READERS.o(values, argument)
  local n = argument:match "^%d*%.?%d*$" and tonumber(argument)
  if not n or n > 100 then
    return fail("-o %s: a percentage from 0 (automatic) to 100", argument)
  end
  values.overprovision_percent = n + 0.0
  return true
end

function READERS.T(values, argument)
  local n = argument:match "^0[xX]%x+$" and tonumber(argument)
    or argument:match "^0[0-7]+$" and tonumber(argument, 8)
    or argument:match "^%d+$" and tonumber(argument)
  n = n and math.tointeger(n)
  if not n or n < 0 then
    return fail("-T %s: seconds since 1970", argument)
  end
  values.time_s = n
  return true
end

function READERS.R(values, argument)
  local uid, gid = argument:match "^(%d+):(%d+)$"
  uid, gid = math.tointeger(tonumber(uid)), math.tointeger(tonumber(gid))
  if not uid or not gid or uid > U32 or gid > U32 then
    return fail("-R %s: the owner of the root directory is UID:GID", argument)
  end
  values.uid, values.gid = uid, gid
  return true
end

function READERS.g(values, argument)
  if argument ~= "android" then
    return fail("-g %s: the only set of defaults is 'android'", argument)
  end
  values.is_android = true
  return true
end

local function known_features()
  local names = {}
  for name in pairs(ondisk.FEATURES) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

function READERS.O(values, argument)
  for name in argument:gmatch "[^,]+" do
    if name == "device_alias" or name == "packed_ssa" then
      return fail("-O %s: %s", name, BRANCH)
    elseif not ondisk.FEATURES[name] then
      local names = known_features()
      return fail("-O %s: unknown feature%s; there are %s", name, opts.suggest(name, names),
        table.concat(names, ", "))
    end
    table.insert(values.features, name)
  end
  return true
end

function READERS.C(values, argument)
  local encoding, flags = argument:match "^([^:]*):?(.*)$"
  if encoding ~= "utf8" then
    return fail("-C %s: the only encoding is utf8", argument)
  end
  values.encoding = 1
  for flag in flags:gmatch "[^,:]+" do
    if flag ~= "strict" and flag ~= "nostrict" then
      return fail("-C %s: unknown flag '%s', there are strict and nostrict", argument, flag)
    end
    values.strict = flag == "strict"
  end
  table.insert(values.features, "casefold")
  return true
end

-- A word of letters; returns how many words of argv it took.
local function read_letters(argv, at, values)
  local word = argv[at]
  for i = 2, #word do
    local letter = word:sub(i, i)
    if UNARGUED[letter] then
      return refused(UNARGUED[letter])(values, nil, letter)
    elseif FLAGS[letter] then
      values[FLAGS[letter]] = true
    elseif READERS[letter] then
      local argument, used = word:sub(i + 1), 1
      if argument == "" then
        argument, used = argv[at + 1], 2
      end
      if not argument then
        return fail("-%s needs an argument", letter)
      end
      local ok, err = READERS[letter](values, argument, letter)
      return ok and used, err
    else
      return fail("-%s: unknown option, the letters are a c C d e E f g i l o O q r R s t T U w z "
        .. "V", letter)
    end
  end
  return 1
end

local function read_long(argv, at, values)
  local name, value = argv[at]:match "^%-%-([^=]*)=?(.*)$"
  if name == "help" then
    values.print_help = true
    return 1
  elseif name ~= "compat" then
    return fail("--%s: unknown option, the long ones are --compat and --help", name)
  end
  local used = argv[at]:find "=" and 1 or 2
  values.compat = used == 1 and value or argv[at + 1]
  if not values.compat or not versions.of(values.compat) then
    return fail("--compat %s: a release is %s", values.compat or "", versions.NAMES)
  end
  return used
end

local function add_android(values)
  values.force, values.wanted_sector_bytes = true, 4096
  values.uid, values.gid = 0, 0
  for _, name in ipairs(values.features) do
    if name == "ro" then
      return
    end
  end
  for _, name in ipairs { "encrypt", "quota", "project_quota", "extra_attr", "verity" } do
    table.insert(values.features, name)
  end
end

local function read_operands(values, operands)
  if #operands == 0 then
    return fail "device not specified"
  elseif #operands > 2 then
    return fail("'%s' is one word too many: DEVICE [SECTORS]", operands[3])
  end
  values.target = operands[1]
  if operands[2] then
    values.wanted_sectors = operands[2]:match "^%d+$" and math.tointeger(tonumber(operands[2]))
    if not values.wanted_sectors then
      return fail("'%s' is no number of sectors", operands[2])
    elseif #values.more > 0 then
      return fail "a number of sectors goes with one device only"
    end
  end
  return values
end

---@class brim.f2fs.CommandLine what brim.f2fs.plans takes, and
---@field target string
---@field more string[] further devices, -c
---@field force? boolean
---@field quiet? boolean
---@field no_discard? boolean
---@field debug_level? integer
---@field wanted_sectors? integer
---@field wanted_sector_bytes? integer
---@field is_android? boolean
---@field print_version? boolean
---@field print_help? boolean

---Read a mkfs.f2fs command line.
---@param argv string[] the words after "mkfs.f2fs"
---@return brim.f2fs.CommandLine? o
---@return brim.Error? err one line: option, value, what would be right
function M.parse(argv)
  local values, operands, at = { features = {}, more = {} }, {}, 1
  local is_end = false
  while at <= #argv do
    local word, used, err = argv[at], 1, nil
    if is_end or word:sub(1, 1) ~= "-" or word == "-" then
      operands[#operands + 1] = word
    elseif word == "--" then
      is_end = true
    elseif word:sub(1, 2) == "--" then
      used, err = read_long(argv, at, values)
    else
      used, err = read_letters(argv, at, values)
    end
    if not used then
      return nil, err
    end
    at = at + used
  end
  if values.print_version or values.print_help then
    return values
  elseif values.is_android then
    add_android(values)
  end
  return read_operands(values, operands)
end

return M
