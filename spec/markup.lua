-- What specs of SVG and HTML share. Used by plot_spec and report_spec.
local assert = require "luassert"

local M = {}

---Every element is closed in the order it was opened, and no bare & or < is left outside of styles.
function M.assert_well_formed(text)
  local open, void = {}, { meta = true }
  local body = text:gsub("<!doctype html>", ""):gsub("<style>.-</style>", "")
  for slash, name, rest in body:gmatch "<(/?)([%a][%w]*)([^<>]*)>" do
    if slash == "/" then
      assert.equal(table.remove(open), name)
    elseif rest:sub(-1) ~= "/" and not void[name] then
      open[#open + 1] = name
    end
  end
  assert.same({}, open)
  local bare = body:gsub("</?[%a][^<>]*>", "")
  assert.is_nil(bare:find "[<>]")
  assert.is_nil(bare:gsub("&%a+;", ""):gsub("&#%d+;", ""):find "&")
end

return M
