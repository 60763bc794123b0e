-- brim.bytes: sizes in bytes: reads "8191p", writes "8191 PiB"; checked arithmetic. The
-- parser is the core's. Called by option checking and by whoever prints sizes. Powers of 1024,
-- always.
local core = require "brim.core"

local M = {}

---Read a size: an integer, an integral float up to 2^53, or a text of digits with one of k m g t p
---e and optionally iB. Nil and the reason for anything else.
---@param v any
---@return integer? n_bytes
---@return string? why
function M.check(v)
  local n, err = core.check_bytes(v)
  return n, err and err.message
end

---Parse the text of a size; raises for anything that is none.
---@param text string
---@return integer n_bytes
function M.parse(text)
  local n, why = M.check(text)
  if not n then
    error("brim.bytes.parse: " .. why, 2)
  end
  return n
end

---Format a size with the largest suffix that keeps it exact: "8191 PiB", "4097".
---@param n_bytes integer
---@return string
function M.format(n_bytes)
  return core.format_bytes(n_bytes)
end

---Format a size for people: exact where that is short, else with one decimal: "512", "28 KiB",
---"192.0 GiB".
---@param n_bytes integer at least 0
---@return string
function M.about(n_bytes)
  local exact = core.format_bytes(n_bytes)
  if n_bytes < 10240 or exact:find "iB$" and #exact <= #"9999 KiB" then
    return exact
  end
  local log2 = 0
  while n_bytes >> log2 >= 10240 and log2 < 60 do
    log2 = log2 + 10
  end
  if n_bytes >> log2 >= 1024 and log2 < 60 then
    log2 = log2 + 10
  end
  return ("%.1f %siB"):format(n_bytes / (1 << log2), ("KMGTPE"):sub(log2 // 10, log2 // 10))
end

---Add two sizes; nil when the sum does not fit into 63 bits.
---@param a_bytes integer
---@param b_bytes integer
---@return integer? sum_bytes
function M.add(a_bytes, b_bytes)
  return core.add(a_bytes, b_bytes)
end

---Multiply two integers; nil when the product does not fit into 63 bits.
---@param a integer
---@param b integer
---@return integer? product
function M.mul(a, b)
  return core.mul(a, b)
end

return M
