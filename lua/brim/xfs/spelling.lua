-- brim.xfs.spelling: "did you mean".
-- Called by options; plain text in, the nearest known word out. Distances count edited characters.
-- (brim.opts suggests too, but needs the C core; this runs in any Lua 5.4.)
local M = {}

-- Edit distance of two short words, a swap of neighbours counting two.
local function distance(a, b)
  local previous = {}
  for j = 0, #b do
    previous[j] = j
  end
  for i = 1, #a do
    local current = { [0] = i }
    for j = 1, #b do
      local substitution = a:byte(i) == b:byte(j) and 0 or 1
      current[j] = math.min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + substitution)
    end
    previous = current
  end
  return previous[#b]
end

---Return the known word nearest to an unknown one, if any is near enough to be meant.
---@param word string
---@param known string[]
---@return string? nearest
function M.nearest(word, known)
  local best, best_distance = nil, math.max(2, #word // 2) + 1
  for _, candidate in ipairs(known) do
    local edits = distance(word:lower(), candidate)
    if edits < best_distance or edits == best_distance and best and candidate < best then
      best, best_distance = candidate, edits
    end
  end
  return best
end

return M
