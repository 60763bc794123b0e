-- brim.xfs.inspect_view: a structure as inspect shows it: a table of its fields' values that prints
-- itself with units, meanings and what is wrong. Beside the fields it holds one key of another
-- kind, `about` (no XFS field has that name). Called by inspect and inspect_*; opens nothing, reads
-- nothing.
local layout = require "brim.layout"
local words = require "brim.xfs.inspect_words"

local M = {}

---@class brim.xfs.View the fields by name, lists and nested structures included
---@field about brim.xfs.About

---@class brim.xfs.About
---@field what string the structure: "agf", "bnobt", ...
---@field title string
---@field fs? brim.xfs.Inspector
---@field layout? brim.Layout
---@field off_bytes? integer on the volume
---@field size_bytes? integer
---@field bytes? string
---@field faults string[] what is wrong
---@field verdicts table<string, brim.xfs.Verdict> of fields that were checked
---@field hidden table<string, "padding"|"table"> fields that are not shown, or in a table
---@field counts table<string, integer> elements of a list field that are in use
---@field lines table[] { name, text, doc } before the fields
---@field tables brim.xfs.Table[] behind the fields
---@field children brim.xfs.View[]
---@field text? string the whole text, where it is not of fields

---@class brim.xfs.Verdict
---@field ok boolean
---@field text string what it should be
---@field is_exact? boolean there is one right value

---@class brim.xfs.Table
---@field title string
---@field columns string[]
---@field count integer
---@field first? integer number of the first row, default 1
---@field row fun(i: integer): string[], string? the cells, and what is wrong with the row

local View = { __name = "brim.xfs.view" }

---Is it a view?
---@param v any
---@return boolean
function M.is(v)
  return getmetatable(v) == View
end

---Make a view of values.
---@param o table what, title, fs, off_bytes, bytes, values
---@return brim.xfs.View
function M.new(o)
  local view = o.values or {}
  view.about = { what = o.what, title = o.title, fs = o.fs, layout = o.layout,
    off_bytes = o.off_bytes, bytes = o.bytes, size_bytes = o.bytes and #o.bytes, faults = {},
    verdicts = {}, hidden = {}, counts = {}, lines = {}, tables = {}, children = {} }
  return setmetatable(view, View)
end

-- --------------------------------------------------------------------- checking

---Note something that is wrong, apart from a single field.
---@param view brim.xfs.View
---@param fmt string
---@param ... any
function M.fault(view, fmt, ...)
  local list = view.about.faults
  list[#list + 1] = fmt:format(...)
end

---Note whether a field is possible, and what it should be where it is not.
---@param view brim.xfs.View
---@param name string
---@param ok boolean?
---@param should string
---@param ... any arguments of `should`
function M.check(view, name, ok, should, ...)
  local before = view.about.verdicts[name]
  if before and not before.ok then
    return
  end
  should = select("#", ...) > 0 and should:format(...) or should
  view.about.verdicts[name] = { ok = ok and true or false, text = should }
  if not ok then
    M.fault(view, "%s should be %s", name, should)
  end
end

---Check that a field has a value.
---@param view brim.xfs.View
---@param name string
---@param expected any
function M.expect(view, name, expected)
  local about = view.about
  local field = about.layout:field(name)
  M.check(view, name, view[name] == expected, "%s",
    words.value(about.layout, field, expected, view, about.fs))
  about.verdicts[name].is_exact = true
end

-- The checksum a structure should have: encoded anew with opaque bytes around it.
local function right_crc(bytes, field)
  local behind = field.off_bytes + 4
  local fields = { { 0, ("bytes[%d]"):format(field.off_bytes), "before" },
    { field.off_bytes, "u32le", "crc" } }
  if behind < #bytes then
    fields[3] = { behind, ("bytes[%d]"):format(#bytes - behind), "behind" }
  end
  local of = layout.struct("crc", { size_bytes = #bytes, crc32c = "crc" })(fields)
  local sealed = of:encode { before = bytes:sub(1, field.off_bytes),
    behind = fields[3] and bytes:sub(behind + 1) or nil }
  return of:decode(sealed).crc
end

---Decode a structure and check its magic number, its checksum and its UUID.
---@param of brim.Layout
---@param o table what, title, fs, off_bytes, bytes; uuid = false: it carries none of its own
---@return brim.xfs.View
function M.decode(of, o)
  local values, intact = of:decode(o.bytes, 0, #o.bytes)
  local view = M.new { what = o.what, title = o.title, fs = o.fs, layout = of,
    off_bytes = o.off_bytes, bytes = o.bytes, values = values }
  for _, field in ipairs(of.fields) do
    if field.magic then
      M.expect(view, field.name, field.magic)
    elseif field.name:find "^pad" or field.name:find "^spare" or field.name == "unused" then
      view.about.hidden[field.name] = "padding"
    end
  end
  local crc = of.checksum and of:field(of.checksum.field)
  if crc then
    M.check(view, crc.name, intact, "0x%x", intact and values[crc.name]
      or right_crc(o.bytes, crc))
    view.about.verdicts[crc.name].is_exact = true
  end
  if of:field "uuid" and o.uuid then
    M.expect(view, "uuid", o.uuid)
  end
  return view
end

---Append a table of rows behind the fields.
---@param view brim.xfs.View
---@param t brim.xfs.Table
function M.table(view, t)
  table.insert(view.about.tables, t)
end

---Append a line before the fields: something that is derived or lies elsewhere.
---@param view brim.xfs.View
---@param name string
---@param text string
---@param doc? string
function M.line(view, name, text, doc)
  table.insert(view.about.lines, { name, text, doc or "" })
end

---Everything that is wrong with it and with what it holds.
---@param view brim.xfs.View
---@return string[]
function M.faults(view)
  local list = table.move(view.about.faults, 1, #view.about.faults, 1, {})
  for _, child in ipairs(view.about.children) do
    for _, fault in ipairs(M.faults(child)) do
      list[#list + 1] = ("%s: %s"):format(child.about.what, fault)
    end
  end
  return list
end

-- ---------------------------------------------------------------------- records

---The columns of a table of records: the fields of a layout, nested ones as "low.owner".
---@param of brim.Layout
---@return string[]
function M.columns(of)
  local list = {}
  for _, field in ipairs(of.fields) do
    if field.record then
      for _, name in ipairs(M.columns(field.record)) do
        list[#list + 1] = field.name .. "." .. name
      end
    elseif not field.name:find "^pad" then
      list[#list + 1] = field.name
    end
  end
  return list
end

---The cells of a record, in the order of the columns.
---@param of brim.Layout
---@param rec table
---@param fs? brim.xfs.Inspector
---@param cells? string[] to append to
---@return string[]
function M.cells(of, rec, fs, cells)
  cells = cells or {}
  for _, field in ipairs(of.fields) do
    if field.record then
      M.cells(field.record, rec[field.name], fs, cells)
    elseif not field.name:find "^pad" then
      cells[#cells + 1] = words.value(of, field, rec[field.name], rec, fs)
    end
  end
  return cells
end

---Show the records of a list field as a table; what is not in use is dropped.
---@param view brim.xfs.View
---@param name string the field
---@param count integer elements in use, more than there is room for when damaged
---@param judge? fun(rec: table, i: integer, list: table): string? what is wrong with one
---@param base? integer number of the first, default 1
function M.records(view, name, count, judge, base)
  local about = view.about
  local field, list = about.layout:field(name), view[name]
  local room = #list
  local used = math.min(count, room)
  view[name] = table.move(list, 1, used, 1, {})
  list = view[name]
  about.hidden[name] = "table"
  local wrong, first, why = 0, nil, nil
  for i = 1, judge and used or 0 do
    local reason = judge(list[i], i, list)
    if reason then
      wrong, first, why = wrong + 1, first or i, why or reason
    end
  end
  if first then
    M.fault(view, "%s[%d] %s%s", name, first, why, wrong > 1
      and (", and %d others are wrong"):format(wrong - 1) or "")
  end
  M.table(view, { title = ("%s: %d of at most %d"):format(name, used, room),
    columns = M.columns(field.record), count = used, first = base,
    row = function(i)
      return M.cells(field.record, list[i], about.fs), judge and judge(list[i], i, list)
    end })
end

-- ------------------------------------------------------------------------- text

local COUNTED <const> = { bytes = true, blocks = true, percent = true, inodes = true,
  seconds = true, ["realtime extents"] = true }

local function verdict_text(verdict)
  if not verdict then
    return ""
  elseif verdict.ok then
    return verdict.is_exact and " (right)" or ""
  end
  return (" (wrong: should be %s)"):format(verdict.text)
end

local function doc_of(field)
  local unit = field.unit and not COUNTED[field.unit] and field.unit
  if field.magic then
    return ""
  end
  return (field.doc or "") .. (unit and (field.doc and " [%s]" or "[%s]"):format(unit) or "")
end

-- A list of integers in runs of one value: "0: null", "1 .. 3: 7 8 9".
local function runs(texts)
  local parts, i = {}, 1
  while i <= #texts do
    local last = i
    while texts[last + 1] == texts[i] do
      last = last + 1
    end
    if last - i >= 2 then
      parts[#parts + 1] = ("[%d..%d] %s"):format(i - 1, last - 1, texts[i])
    else
      last = i
      parts[#parts + 1] = ("[%d] %s"):format(i - 1, texts[i])
    end
    i = last + 1
  end
  return parts
end

-- Joins words into lines no longer than a width, each with a prefix.
local function wrapped(out, prefix, parts, width)
  local line = ""
  for _, part in ipairs(parts) do
    if #line > 0 and #line + 2 + #part > width then
      out[#out + 1] = prefix .. line
      line = ""
    end
    line = line .. (#line > 0 and "  " or "") .. part
  end
  out[#out + 1] = prefix .. line
end

local function list_lines(out, about, field, values)
  local texts = {}
  for i, v in ipairs(values[field.name]) do
    texts[i] = field.record
      and ("{ %s }"):format(table.concat(M.cells(field.record, v, about.fs), ", "))
      or words.value(about.layout, field, v, values, about.fs)
  end
  local doc = doc_of(field)
  out[#out + 1] = ("  %s%s"):format(field.name, doc ~= "" and ("  -- " .. doc) or "")
  wrapped(out, "    ", runs(texts), 92)
end

local function scalar_row(about, field, values)
  local v = values[field.name]
  local unit = COUNTED[field.unit] and " " .. field.unit or ""
  local text = words.value(about.layout, field, v, values, about.fs)
  return { field.name, text .. unit .. verdict_text(about.verdicts[field.name]), doc_of(field) }
end

-- Rows in three columns; a value too long for its column takes the meaning along.
local function append_rows(out, rows)
  local widths = { 0, 0 }
  for _, row in ipairs(rows) do
    widths[1] = math.max(widths[1], #row[1])
    widths[2] = math.max(widths[2], #row[2] <= 44 and #row[2] or 0)
  end
  for _, row in ipairs(rows) do
    local pad = (" "):rep(math.max(0, widths[2] - #row[2]))
    out[#out + 1] = ("  %s%s  %s%s  %s"):format(row[1], (" "):rep(widths[1] - #row[1]), row[2], pad,
      row[3]):gsub("%s+$", "")
  end
end

local function field_lines(out, view)
  local about, rows, lists = view.about, {}, {}
  for _, line in ipairs(about.lines) do
    rows[#rows + 1] = line
  end
  for _, field in ipairs(about.layout and about.layout.fields or {}) do
    if about.hidden[field.name] then
      goto continue
    elseif field.array then
      lists[#lists + 1] = field
    else
      rows[#rows + 1] = scalar_row(about, field, view)
    end
    ::continue::
  end
  append_rows(out, rows)
  for _, field in ipairs(lists) do
    list_lines(out, about, field, view)
  end
end

-- The rows of a table as texts, the header first.
local function row_texts(t)
  local rows, widths = { t.columns }, {}
  for i = 1, t.count do
    local cells, why = t.row(i)
    rows[i + 1], cells.why = cells, why
  end
  for _, row in ipairs(rows) do
    for c, text in ipairs(row) do
      widths[c] = math.max(widths[c] or 0, #text)
    end
  end
  local texts = {}
  for i, row in ipairs(rows) do
    local cells = {}
    for c, text in ipairs(row) do
      local pad = (" "):rep(widths[c] - #text)
      cells[c] = t.left and text .. pad or pad .. text
    end
    texts[i] = ("%s%s"):format(table.concat(cells, "  "),
      row.why and ("  (wrong: %s)"):format(row.why) or ""):gsub("%s+$", "")
  end
  return texts
end

-- Numbered rows; of many that are the same, the first.
local function table_lines(out, t)
  out[#out + 1] = "  " .. t.title
  if t.count == 0 then
    return
  end
  local texts, first = row_texts(t), t.first or 1
  local width = #tostring(t.count - 1 + first)
  out[#out + 1] = ("    %s  %s"):format((" "):rep(width), texts[1])
  local i = 2
  while i <= #texts do
    local last = i
    while texts[last + 1] == texts[i] do
      last = last + 1
    end
    local number = tostring(i - 2 + first)
    out[#out + 1] = ("    %s%s  %s"):format((" "):rep(width - #number), number, texts[i])
    if last - i >= 3 then
      out[#out + 1] = ("    %s  %d more like this"):format((" "):rep(width), last - i)
      i = last
    end
    i = i + 1
  end
end

local function place(about)
  if not about.off_bytes then
    return ""
  end
  return (", %d bytes at %d (0x%x)"):format(about.size_bytes, about.off_bytes, about.off_bytes)
end

local function lines_of(view)
  local about, out = view.about, {}
  if about.text then
    return { (about.text:gsub("\n$", "")) }
  end
  out[1] = about.title .. place(about)
  field_lines(out, view)
  for _, t in ipairs(about.tables) do
    table_lines(out, t)
  end
  for _, child in ipairs(about.children) do
    out[#out + 1] = ""
    local lines = lines_of(child)
    table.move(lines, 1, #lines, #out + 1, out)
  end
  for _, fault in ipairs(about.faults) do
    out[#out + 1] = "  WRONG: " .. fault
  end
  return out
end

---Write a view for people.
---@param view brim.xfs.View
---@return string
function M.text(view)
  return table.concat(lines_of(view), "\n")
end

View.__tostring = M.text

---Write bytes as people read them: offset, 16 bytes, and their letters; repeated lines as "*".
---@param bytes string
---@param off_bytes? integer of the first byte
---@return string
function M.dump(bytes, off_bytes)
  local out, before, star = {}, nil, false
  for at = 1, #bytes, 16 do
    local part = bytes:sub(at, at + 15)
    if part == before and at + 16 <= #bytes then
      out[#out + 1] = not star and "*" or nil
      star = true
    else
      local hex = words.hex(part):gsub("(%x%x)", "%1 "):gsub("^(" .. ("%x%x "):rep(8) .. ")", "%1 ")
      out[#out + 1] = ("%012x  %-49s |%s|"):format((off_bytes or 0) + at - 1, hex,
        (part:gsub("[^\x20-\x7e]", ".")))
      star = false
    end
    before = part
  end
  return table.concat(out, "\n")
end

-- ------------------------------------------------------------------------- JSON

local function plain(v, of)
  if M.is(v) then
    return M.json(v)
  elseif type(v) == "table" then
    local out = {}
    for k, x in pairs(v) do
      if k ~= "about" then
        out[k] = plain(x)
      end
    end
    return out
  elseif math.type(v) == "integer" and v < 0 then
    return words.unsigned(v)
  elseif type(v) == "string" then
    return of and of.kind == "bytes" and words.hex(v) or words.text(v)
  end
  return v
end

---What --json prints: what, title, off_bytes, size_bytes, intact, faults, fields. Integers are
---exact, those past 2^63-1 strings; fields that only pad are left out.
---@param view brim.xfs.View
---@return table
function M.json(view)
  local about, fields = view.about, {}
  for name, v in pairs(view) do
    local field = about.layout and about.layout:field(name)
    if name ~= "about" and about.hidden[name] ~= "padding" then
      fields[name] = plain(v, field)
    end
  end
  local faults = M.faults(view)
  return { what = about.what, title = about.title, off_bytes = about.off_bytes,
    size_bytes = about.size_bytes, intact = #faults == 0, faults = faults, fields = fields }
end

return M
