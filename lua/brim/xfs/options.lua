-- brim.xfs.options: the mkfs.xfs command line -> a table of what it asks for.
-- Called by the mkfs recipe; the Lua API takes the same table (SCHEMA). Nothing is opened here and
-- nothing defaulted: geometry does both the defaults and the rules that need the device.
-- Units: bytes throughout the result, see schema; values of "sunit" and "swidth" are 512 bytes.
local number = require "brim.xfs.number"
local opts = require "brim.opts"
local schema = require "brim.xfs.schema"
local versions = require "brim.xfs.versions"
local words = require "brim.xfs.words"

local M = {}

---Every geometry option as data: type, range, default, help (STYLE B7).
M.SCHEMA = schema.SCHEMA

local DEFAULT_SECTOR_BYTES <const> = 512
local STRIPE_SECTOR_BYTES <const> = 512

local SUBOPTIONS <const>, CONFLICTS <const> = words.SUBOPTIONS, words.CONFLICTS
local REFUSED <const>, FLAGS <const>, RANGES <const> = words.REFUSED, words.FLAGS, words.RANGES

-- Keys of the result that are not in SCHEMA but become one of it.
local BECOMES = {
  sunit = "stripe_unit_bytes", su = "stripe_unit_bytes", swidth = "stripe_width_bytes",
  sw = "stripe_width_bytes", log_sunit = "log_stripe_unit_bytes",
}

-- The error of an option as it was spelled; its `option` is the key of SCHEMA if it has one.
local function fail(spelled, value, reason, ...)
  if select("#", ...) > 0 then
    reason = reason:format(...)
  end
  local err = schema.option_error(spelled, value, reason)
  local letter, word = spelled:match("^%-(%l) (.+)$")
  local spec = letter and SUBOPTIONS[letter][word]
  if spec and spec.name then
    err.option = BECOMES[spec.name] or spec.name
  end
  return nil, err
end

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

local function unknown_suboption(letter, word)
  if word == "" then
    return fail("-" .. letter, nil, "a sub-option without a name, look for stray commas")
  end
  local known = sorted_keys(SUBOPTIONS[letter])
  local suggestion = opts.suggest(word, known)
  if suggestion == "" then
    suggestion = (", -%s knows %s"):format(letter, table.concat(known, ", "))
  end
  return fail(("-%s %s"):format(letter, word), nil, "unknown sub-option%s", suggestion)
end

-- Split "a=1,b" into the list of settings; nothing is read yet. Like the reference, an empty
-- argument and one trailing comma are nothing.
local function add_settings(settings, letter, argument)
  if argument == "" then
    return true
  end
  for item in (argument:gsub(",$", "") .. ","):gmatch("([^,]*),") do
    local word, value = item:match("^([^=]*)=(.*)$")
    word = word or item
    if not SUBOPTIONS[letter][word] then
      return unknown_suboption(letter, word)
    end
    settings[#settings + 1] = { letter = letter, word = word, value = value,
      option = ("-%s %s"):format(letter, word), spec = SUBOPTIONS[letter][word] }
  end
  return true
end

local function check_presence(settings)
  local seen = {}
  for _, setting in ipairs(settings) do
    if seen[setting.option] then
      return fail(setting.option, setting.value, "given twice, give it once")
    end
    seen[setting.option] = true
  end
  for _, pair in ipairs(CONFLICTS) do
    if seen[pair[1]] and seen[pair[2]] then
      return fail(pair[1], nil, "cannot be combined with %s, give one of them", pair[2])
    end
  end
  return true
end

-- Readers: setting -> value or nil and a reason.
local READERS = {}

function READERS.flag(setting)
  if setting.value == nil or setting.value == "" or setting.value == "1" then
    return true
  elseif setting.value == "0" then
    return false
  end
  local value, reason = number.parse_integer(setting.value)
  if value == 0 or value == 1 then
    return value == 1
  end
  return nil, reason or "must be 0 or 1"
end

function READERS.number(setting)
  return number.parse_integer(setting.value)
end

function READERS.threads(setting)
  if setting.value == nil or setting.value == "" or setting.value == "nr_cpus" then
    return 1
  end
  return number.parse_integer(setting.value)
end

-- A word, or 0 and 1 for the first and the last of them.
function READERS.autofsck(setting)
  local value = setting.value
  if value == nil or value == "" or value == "1" then
    return "repair"
  end
  return value == "0" and "none" or value
end

function READERS.early(setting)
  return number.parse_size(setting.value, {})
end

function READERS.size(setting, units)
  return number.parse_size(setting.value, units)
end

function READERS.text(setting)
  return setting.value
end

function READERS.uuid(setting)
  local uuid = setting.value:lower()
  local reason = schema.check("uuid", uuid)
  if reason then
    return nil, reason
  end
  return uuid
end

function READERS.never(setting)
  return nil, setting.spec.reason
end

-- Restating a default is fine, any other value of the reference is not brim's.
function READERS.only(setting)
  local value = setting.value
  if value == "" then
    value = nil
  end
  if (value or setting.spec.absent) == setting.spec.value then
    return true
  end
  return nil, ("%s (accepted: %s)"):format(setting.spec.reason, setting.spec.value)
end

local NEEDS_VALUE = { number = true, early = true, size = true, text = true, uuid = true }

-- Check a number against the schema, or against the reference's field width.
local function range_fault(name, value)
  local range = RANGES[name]
  if range and (value < range[1] or value > range[2]) then
    return ("must be %d to %d"):format(range[1], range[2])
  elseif M.SCHEMA[name] then
    return schema.check(name, value)
  end
end

local function read_setting(setting, units, values)
  local spec = setting.spec
  if NEEDS_VALUE[spec.read] and (setting.value == nil or setting.value == "") then
    return fail(setting.option, nil, "needs a value")
  end
  local since = spec.since or spec.name and M.SCHEMA[spec.name] and M.SCHEMA[spec.name].since
  if since and versions.is_before(values.compat, since) then
    return fail(setting.option, nil, "mkfs.xfs %s does not have it; --compat %s does",
      versions.of(values.compat).name, since)
  end
  local value, reason = READERS[spec.read](setting, units)
  if value ~= nil then
    reason = range_fault(spec.name, value)
  end
  if reason then
    return fail(setting.option, setting.value, "%s", reason)
  end
  if spec.name then
    values[spec.name] = value
  end
  if setting.letter == "s" then
    -- -s speaks for the log too, and the later of the two wins.
    values.log_sector_bytes = nil
  end
  return true
end

-- Read every setting; sizes come last, since "s" and "b" count sectors and blocks.
local function read_settings(settings, values)
  for _, setting in ipairs(settings) do
    if setting.spec.read ~= "size" then
      local ok, err = read_setting(setting, nil, values)
      if not ok then
        return nil, err
      end
    end
  end
  local units = {
    s = values.sector_bytes or DEFAULT_SECTOR_BYTES,
    b = values.block_bytes or M.SCHEMA.block_bytes.default,
  }
  for _, setting in ipairs(settings) do
    if setting.spec.read == "size" then
      local ok, err = read_setting(setting, units, values)
      if not ok then
        return nil, err
      end
      if setting.value:find("[sS]$") and not values.sector_bytes then
        values.suffix_sector_bytes = DEFAULT_SECTOR_BYTES
      end
    end
  end
  return true
end

-- Turn unit and width (sunit and swidth in sectors, su in bytes and sw in units) into bytes.
local function read_stripe(values)
  local unit, width = values.sunit, values.swidth
  local unit_bytes, width_bytes
  if unit or width then
    if not (unit and width) then
      return fail(unit and "-d sunit" or "-d swidth", unit or width,
        "sunit and swidth go together, give both")
    end
    unit_bytes, width_bytes = unit * STRIPE_SECTOR_BYTES, width * STRIPE_SECTOR_BYTES
  elseif values.su == 0 then
    unit_bytes, width_bytes = 0, 0
  elseif values.su or values.sw and values.sw > 0 then
    if not (values.su and values.sw) then
      return fail(values.su and "-d su" or "-d sw", values.su or values.sw,
        "su and sw go together, give both")
    end
    unit_bytes = values.su
    -- Past 2^31 the product is refused anyway; do not let it wrap.
    width_bytes = math.min(values.su, 1 << 31) * math.min(values.sw, 1 << 31)
  end
  local fields = { { "stripe_unit_bytes", unit_bytes }, { "stripe_width_bytes", width_bytes } }
  for i, spelled in ipairs({ { "-d sunit", "-d su" }, { "-d swidth", "-d sw" } }) do
    local name, bytes = fields[i][1], fields[i][2]
    local reason = bytes and schema.check(name, bytes)
    if reason then
      return fail(unit and spelled[1] or spelled[2], nil, "the stripe %s of %d bytes is %s",
        i == 1 and "unit" or "width", bytes, reason)
    end
    values[name] = bytes
  end
  if values.log_sunit then
    values.log_stripe_unit_bytes = values.log_sunit * STRIPE_SECTOR_BYTES
  end
  values.sunit, values.swidth, values.su, values.sw, values.log_sunit = nil, nil, nil, nil, nil
  return true
end

local function set_target(operands, values)
  if #operands > 1 then
    return fail("target", nil, "one is enough, \"%s\" is one too many", operands[2])
  elseif operands[1] == "" then
    return fail("target", nil, "its name is empty")
  elseif operands[1] and values.target then
    return fail("-d name", values.target, "the target is named twice, give it once")
  end
  values.target = operands[1] or values.target
  if not values.target then
    return fail("target", nil, "name the device or file to format")
  elseif values.file and not values.size_bytes then
    return fail("-d file", nil, "a file to be made needs -d size")
  end
  return true
end

-- The reference's `--unsupported`, which may be cut short like every long option, and brim's own
-- `--compat VERSION`. Returns how many words of argv it took.
local function read_long(argv, at, values)
  local word = argv[at]:sub(3)
  if word ~= "" and ("unsupported"):sub(1, #word) == word then
    values.unsupported, values.names_unsupported = true, true
    return 1
  end
  local compat = word == "compat" and argv[at + 1] or word:match "^compat=(.*)$"
  if compat then
    values.compat = compat
    local reason = schema.check("compat", compat)
    if reason then
      return fail("compat", compat, "%s", reason)
    end
    return word == "compat" and 2 or 1
  elseif word == "compat" then
    return fail("--compat", nil, "needs an argument: %s", versions.NAMES)
  end
  return fail("--" .. word, nil, "unknown option, the long ones are --unsupported and --compat")
end

local function set_label(values, label)
  local reason = schema.check("label", label)
  if reason then
    return fail("label", label, "%s", reason)
  end
  values.label = label
  return true
end

-- One option letter; `argument` is nil for those without.
local function read_letter(letter, argument, values, settings)
  if letter == "L" then
    return set_label(values, argument)
  elseif REFUSED[letter] then
    return fail("-" .. letter, argument, "%s", REFUSED[letter])
  end
  return add_settings(settings, letter, argument)
end

-- A word like -fK or -bsize=1k: flags, then perhaps one option whose argument is the rest of the
-- word or the next one. Returns how many words of argv it took.
local function read_cluster(argv, at, values, settings)
  local word = argv[at]
  for i = 2, #word do
    local letter = word:sub(i, i)
    if FLAGS[letter] then
      values[FLAGS[letter]] = true
      if letter == "V" then
        return 1
      end
    elseif SUBOPTIONS[letter] or REFUSED[letter] or letter == "L" then
      local argument, used = word:sub(i + 1), 1
      if argument == "" then
        argument, used = argv[at + 1], 2
      end
      if not argument then
        return fail("-" .. letter, nil, "needs an argument")
      end
      local ok, err = read_letter(letter, argument, values, settings)
      return ok and used, err
    else
      return fail("-" .. letter, nil, "unknown option, the letters are b d i l m n s L f C K N q V")
    end
  end
  return 1
end

-- All words of the command line, options and operands in any order.
local function read_words(argv, values, settings, operands)
  local at, options_end = 1, false
  while at <= #argv do
    local word, used, err = argv[at], 1, nil
    if options_end or word == "-" or word:sub(1, 1) ~= "-" then
      operands[#operands + 1] = word
    elseif word == "--" then
      options_end = true
    elseif word:sub(1, 2) == "--" then
      used, err = read_long(argv, at, values)
    else
      used, err = read_cluster(argv, at, values, settings)
    end
    if not used then
      return nil, err
    elseif values.print_version then
      return true
    end
    at = at + used
  end
  return true
end

-- The reference allows tiny filesystems to its own test suite, known by these three.
local function test_suite_runs()
  return os.getenv("TEST_DIR") and os.getenv("TEST_DEV") and os.getenv("QA_CHECK_FS")
end

---@class brim.xfs.CommandLine: brim.xfs.Options
---@field target? string the device or file to format; nil only with print_version
---@field force? boolean -f: format over another filesystem
---@field no_discard? boolean -K
---@field dry_run? boolean -N: print the geometry, write nothing
---@field quiet? boolean -q
---@field print_version? boolean -V: nothing after it is read
---@field file? boolean -d file: the target is a regular file, to be made anew
---@field names_unsupported? boolean --unsupported was given; the environment asks silently
---@field suffix_sector_bytes? integer what the suffix "s" counted as no sector size was named

---Read a mkfs.xfs command line. The result holds only what was given.
---@param argv string[] the words after "mkfs.xfs"
---@return brim.xfs.CommandLine? o
---@return brim.xfs.OptionError? err one line: option, value, what would be right
function M.parse(argv)
  local values, settings, operands = {}, {}, {}
  local ok, err = read_words(argv, values, settings, operands)
  if ok and values.print_version then
    return values
  end
  for _, step in ipairs({
    function() return check_presence(settings) end,
    function() return read_settings(settings, values) end,
    function() return read_stripe(values) end,
    function() return set_target(operands, values) end,
  }) do
    if ok then
      ok, err = step()
    end
  end
  if not ok then
    return nil, err
  end
  if test_suite_runs() then
    values.unsupported = true
  end
  return values
end

return M
