-- Golden transcripts: each spec/cli/*.t is prose with commands and what they print, indented:
--     $ command            (continued by lines that begin with "  > ")
--     output, stdout and stderr together; a line ending in " (glob)" may hold *
--     [2]                  the exit status where it is not 0
-- Commands run in a fresh directory per file, with `brim` being the one that was built.
local helper = require "spec.helper"

local function parse(text)
  local steps, prose = {}, nil
  for line in text:gmatch("([^\n]*)\n") do
    local step = steps[#steps]
    local command, more = line:match("^  %$ (.*)$"), line:match("^  > ?(.*)$")
    if command then
      steps[#steps + 1] = { command = command, expected = {}, status = 0, prose = prose }
      prose = nil
    elseif more and step and #step.expected == 0 then
      step.command = step.command .. "\n" .. more
    elseif line:find("^  %[%d+%]$") then
      step.status = math.tointeger(line:match("%d+"))
    elseif line:find("^  ") then
      step.expected[#step.expected + 1] = line:sub(3)
    elseif line ~= "" then
      prose = line
    end
  end
  return steps
end

local function matches(expected, got)
  local glob = expected:match("^(.*) %(glob%)$")
  if not glob then
    return expected == got
  end
  local pattern = glob:gsub("[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"):gsub("%*", ".*")
  return got:find("^" .. pattern .. "$") ~= nil
end

local function same(expected, got)
  if #expected ~= #got then
    return false
  end
  for i, line in ipairs(expected) do
    if not matches(line, got[i]) then
      return false
    end
  end
  return true
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch("([^\n]*)\n") do
    lines[#lines + 1] = line
  end
  lines[#lines + 1] = text:match("[^\n]+$")
  return lines
end

local function run(step, dir)
  local script = dir .. "/.command"
  helper.write(script, ('cd %s\nPATH=%s:$PATH\n%s\n'):format(helper.quote(dir),
    helper.quote(helper.root .. "/" .. helper.build), step.command))
  return helper.sh("bash %s", helper.quote(script))
end

local found = helper.must("ls spec/cli/*.t")

describe("transcript", function()
  for path in found:gmatch("[^\n]+") do
    it(path:match("[^/]*$"), function()
      local dir = helper.must("mktemp -d"):gsub("\n$", "")
      for _, step in ipairs(parse(helper.read(path))) do
        local out, status = run(step, dir)
        if not same(step.expected, lines_of(out)) or status ~= step.status then
          error(("%s\n$ %s\n--- expected, [%d]\n%s\n--- got, [%d]\n%s"):format(step.prose or "",
            step.command, step.status, table.concat(step.expected, "\n"), status, out), 0)
        end
      end
    end)
  end
end)
