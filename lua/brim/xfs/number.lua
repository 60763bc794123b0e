-- brim.xfs.number: the numbers of a mkfs.xfs command line, read without guessing.
-- Called by options. Where mkfs.xfs wraps, clamps or reads octal, the answer is a reason instead.
-- Units: parse_size returns bytes, its suffixes are powers of 1024 and "s", "b".
local M = {}

local SHIFTS = { k = 10, m = 20, g = 30, t = 40, p = 50, e = 60 }
local MAX_DIGITS <const> = tostring(math.maxinteger)
local TOO_LARGE <const> = "past the largest offset, 2^63-1; 8191p is the largest whole-PiB size"
local ONE_PAST <const> = "this is 8 EiB, 2^63, one past the largest offset, 2^63-1;"
  .. " 8191p is the largest whole-PiB size"

-- Reason why text that is no plain number is none.
local function fault(text)
  if text == "" then
    return "a number is missing"
  elseif text:find("%s") then
    return "blanks are not part of a number"
  elseif text:find("^[+-]") then
    return "signs are not accepted, write digits only"
  elseif text:find("^%d+%.%d") or text:find("^%d+[eE]%d") or text:find("^%.%d") then
    return "fractions and exponents are not accepted, write a whole number"
  end
  return "not a number"
end

-- Value of a string of digits; nil if it is past 2^63-1.
local function decimal(digits)
  if #digits > #MAX_DIGITS or #digits == #MAX_DIGITS and digits > MAX_DIGITS then
    return nil
  end
  return math.tointeger(tonumber(digits))
end

-- Split off the leading digits: value (nil if too large) and the rest, or nil and a reason.
local function leading_number(text)
  local hex_digits, hex_rest = text:match("^0[xX](%x+)(.*)$")
  if hex_digits then
    hex_digits = hex_digits:gsub("^0+", "")
    local fits = #hex_digits < 16 or #hex_digits == 16 and hex_digits < "8"
    return fits and (tonumber(hex_digits, 16) or 0) or nil, hex_rest
  end
  local digits, rest = text:match("^(%d+)(.*)$")
  if not digits then
    return nil, nil, fault(text)
  end
  if #digits > 1 and digits:sub(1, 1) == "0" then
    return nil, nil, "a leading zero makes mkfs.xfs read octal, write it without"
  end
  return decimal(digits), rest
end

---Read a whole number without suffix, decimal or 0x hexadecimal.
---@param text string
---@return integer? value 0..2^63-1
---@return string? reason
function M.parse_integer(text)
  local value, rest, reason = leading_number(text)
  if reason then
    return nil, reason
  elseif rest ~= "" then
    if #rest == 1 and (SHIFTS[rest:lower()] or rest:find("^[sSbB]$")) then
      return nil, "size suffixes are not accepted here, write the plain number"
    end
    return nil, fault(text)
  elseif not value then
    return nil, "larger than 2^63-1"
  end
  return value
end

-- Reason why what follows the digits is no suffix.
local function suffix_fault(text, rest)
  local unit = rest:lower():match("^([kmgtpe])i?b$")
  if unit then
    return ("write %s%s; suffixes are one letter of s b k m g t p e"):format(
      text:sub(1, #text - #rest), unit)
  elseif rest:find("^[%a]+$") then
    return ("unknown suffix \"%s\", the suffixes are s b k m g t p e"):format(rest)
  end
  return fault(text)
end

---Read a size: a whole number with at most one suffix letter of s b k m g t p e.
---@param text string
---@param units {s?: integer, b?: integer} bytes of a sector and of a block, nil where not yet known
---@return integer? bytes 0..2^63-1
---@return string? reason
function M.parse_size(text, units)
  local value, rest, reason = leading_number(text)
  if reason then
    return nil, reason
  end
  local suffix = rest:lower()
  if suffix == "" then
    if not value then
      return nil, TOO_LARGE
    end
    return value
  elseif suffix == "s" or suffix == "b" then
    local unit_bytes = units[suffix]
    if not unit_bytes then
      return nil, ("the suffix \"%s\" counts what is only being defined here, write bytes"):format(
        suffix)
    elseif not value or value > math.maxinteger // unit_bytes then
      return nil, TOO_LARGE
    end
    return value * unit_bytes
  end
  local shift = SHIFTS[suffix]
  if not shift then
    return nil, suffix_fault(text, rest)
  elseif not value or value > math.maxinteger >> shift then
    return nil, value == 1 << (63 - shift) and ONE_PAST or TOO_LARGE
  end
  return value << shift
end

return M
