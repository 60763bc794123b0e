-- On-disk structures: declaring them and what is refused, encoding against string.pack and a CRC
-- computed bit by bit, decoding, and the XFS ones against what mkfs.xfs wrote and xfs_db reads.
local layout = require "brim.layout"
local ondisk = require "brim.xfs.ondisk"
local symbol = require "brim.symbol"

local SEED <const> = 20250902
local MAX <const>, MIN <const> = math.maxinteger, math.mininteger

local struct = layout.struct

-- ------------------------------------------------------------------ an oracle

local POLYNOMIALS <const> = { crc32c = 0x82f63b78, crc32 = 0xedb88320 }

-- The register after some bytes, bit by bit, reflected; neither inverted before nor after.
local function crc_bitwise(kind, register, bytes)
  for k = 1, #bytes do
    register = register ~ bytes:byte(k)
    for _ = 1, 8 do
      register = register >> 1 ~ (register & 1 == 1 and POLYNOMIALS[kind] or 0)
    end
  end
  return register
end

local function integer_format(field, endian)
  return (endian or field.endian) == "big" and (">I" .. field.width_bytes)
    or ("<I" .. field.width_bytes)
end

local function pack_int(field, v)
  if field.width_bytes < 8 then
    v = v & (1 << 8 * field.width_bytes) - 1
  end
  return field.width_bytes == 8 and string.pack(field.endian == "big" and ">i8" or "<i8", v)
    or string.pack(integer_format(field), v)
end

local pack

local function pack_element(field, v)
  if field.kind == "int" then
    return pack_int(field, v)
  elseif field.kind == "record" then
    return pack(field.record, v)
  elseif field.kind == "uuid" then
    return (v:gsub("-", ""):gsub("%x%x", function(hex) return string.char(tonumber(hex, 16)) end))
  end
  return v .. ("\0"):rep(field.width_bytes - #v)
end

-- What a structure with every field given encodes to; its checksum as zeros.
function pack(of, values, size_bytes)
  local parts = {}
  for _, field in ipairs(of.fields) do
    for _, v in ipairs(field.array and values[field.name] or { values[field.name] }) do
      parts[#parts + 1] = pack_element(field, v)
    end
  end
  local bytes = table.concat(parts)
  return bytes .. ("\0"):rep((size_bytes or of.size_bytes) - #bytes)
end

local function with_checksum(of, bytes)
  local c = of.checksum
  if not c then
    return bytes
  end
  local field = of:field(c.field)
  local zeroed = bytes:sub(1, field.off_bytes) .. "\0\0\0\0" .. bytes:sub(field.off_bytes + 5)
  local crc = crc_bitwise(c.kind or "crc32c", c.seed or 0xffffffff, zeroed)
    ~ (c.xor_out or 0xffffffff)
  return bytes:sub(1, field.off_bytes) .. string.pack(integer_format(field), crc)
    .. bytes:sub(field.off_bytes + 5)
end

-- --------------------------------------------------------------- random values

local function random_bytes(n)
  local bytes = {}
  for k = 1, n do
    bytes[k] = string.char(math.random(0, 255))
  end
  return table.concat(bytes)
end

local function random_int(width_bytes)
  local edges = { 0, 1, -1, MAX, MIN, 0x7f, 0x80, 0xff }
  local v = math.random(4) == 1 and edges[math.random(#edges)] or math.random(0)
  return width_bytes == 8 and v or v & (1 << 8 * width_bytes) - 1
end

local random_values

local function random_element(field)
  if field.kind == "int" then
    return random_int(field.width_bytes)
  elseif field.kind == "record" then
    return random_values(field.record, field.width_bytes)
  elseif field.kind == "uuid" then
    local hex = random_bytes(16):gsub(".", function(c) return ("%02x"):format(c:byte()) end)
    return (hex:gsub("^(........)(....)(....)(....)", "%1-%2-%3-%4-"))
  elseif field.kind == "char" then
    local n = math.random(0, field.width_bytes)
    return (random_bytes(n):gsub("%z", "x"))
  end
  return random_bytes(field.width_bytes)
end

-- A value for every field but the checksum; open lists as long as fit.
function random_values(of, size_bytes)
  local values = {}
  for _, field in ipairs(of.fields) do
    if field.array then
      local list = {}
      for k = 1, of.handle:elements(field.index, size_bytes) do
        list[k] = random_element(field)
      end
      values[field.name] = list
    elseif not (of.checksum and of.checksum.field == field.name) then
      values[field.name] = random_element(field)
    end
  end
  return values
end

local function without_checksum(of, values)
  if of.checksum then
    values[of.checksum.field] = nil
  end
  return values
end

-- Encodes, compares with the oracle, decodes, compares with the values; then breaks a byte.
local function check_round_trip(of, size_bytes, label)
  local values = random_values(of, size_bytes)
  local bytes = of:encode(values, size_bytes)
  local packed = {}
  for name, v in pairs(values) do
    packed[name] = v
  end
  if of.checksum then
    packed[of.checksum.field] = 0
  end
  assert.equal(size_bytes, #bytes, label)
  assert.is_true(with_checksum(of, pack(of, packed, size_bytes)) == bytes, label)
  local decoded, intact = of:decode(bytes, 0, size_bytes)
  assert.is_true(intact, label)
  assert.same(values, without_checksum(of, decoded), label)
  local shifted = of:decode("xyz" .. bytes .. "xyz", 3, size_bytes)
  assert.same(values, without_checksum(of, shifted), label)
  if of.checksum then
    local at = math.random(size_bytes)
    local broken = bytes:sub(1, at - 1) .. string.char(bytes:byte(at) ~ 1 << math.random(0, 7))
      .. bytes:sub(at + 1)
    assert.is_false(select(2, of:decode(broken, 0, size_bytes)), ("%s: byte %d"):format(label, at))
  end
end

-- All layouts of a module, by name, in one order.
local function layouts_of(module)
  local list = {}
  for name, v in pairs(module) do
    if type(v) == "table" and v.fields and v.handle then
      list[#list + 1] = { name = name, layout = v }
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

-- ----------------------------------------------------------------------- specs

describe("brim.layout", function()
  local point = struct("point", { size_bytes = 16, endian = "big" }) {
    { 0, "u32", "x", value = 7, doc = "across" },
    { 4, "u16le", "y", unit = "blocks" },
    { 6, "u8[2]", "z" },
    { 8, "u64", "far" },
  }
  local header = struct("header", { size_bytes = 64, endian = "little", crc32c = "sum",
    extensible = true, doc = "of everything" }) {
    { 0, "u32", "magic", magic = 0x31415926 },
    { 4, "u32be", "sum" },
    { 8, "char[8]", "label" },
    { 16, "uuid", "id" },
    { 32, point, "one" },
    { 48, point:array(), "points" },
  }

  describe("declares", function()
    it("fields of each kind", function()
      assert.same({ "x", "y", "z", "far" }, point:field_names())
      assert.equal("big", point:field("x").endian)
      assert.equal("little", point:field("y").endian)
      assert.equal("blocks", point:field("y").unit)
      assert.int(point:field("z").count, 2)
      assert.is_nil(point:field "nothing")
      assert.equal("record", header:field("points").kind)
      assert.int(header:field("points").count, 0)
      assert.int(header:field("magic").value, 0x31415926)
    end)

    it("and prints itself", function()
      assert.equal(table.concat({
        "point: 16 bytes", "  0x000  u32be          x              across",
        "  0x004  u16le          y               [blocks]", "  0x006  u8[2]          z",
        "  0x008  u64be          far" }, "\n"), tostring(point))
      assert.matches("^header: 64 bytes or more, of everything\n", tostring(header))
      assert.matches("point%[%]%s+points", tostring(header))
    end)

    -- Size, fields, what the message must hold.
    local WRONG = {
      { 8, { { 0, "u32", "a" }, { 2, "u32", "b" } }, { "'b'", "0x2", "overlaps" } },
      { 8, { { 0, "u32", "a" }, { 6, "u16", "b" } }, { "'b'", "0x6", "gap", "0x4" } },
      { 8, { { 0, "u32", "a" } }, { "end at 4", "stated 8" } },
      { 4, { { 0, "u32", "a" }, { 4, "u32", "b" } }, { "'b'", "past the stated 4" } },
      { 8, { { 4, "u32", "a" } }, { "'a'", "gap" } },
      { 3, { { 0, "u24", "a" } }, { "unknown type 'u24'" } },
      { 4, { { 0, "i32", "a" } }, { "unknown type 'i32'" } },
      { 4, { { 0, "u32xx", "a" } }, { "unknown type 'u32xx'" } },
      { 4, { { 0, "u32[x]", "a" } }, { "unknown type 'u32[x]'" } },
      { 4, { { 0, "u32", "a", valeu = 1 } }, { "'a'", "valeu" } },
      { 4, { { 0, "u32" } }, { "at 0 ", "no name" } },
      { 4, { { 0, "u32", 5 } }, { "at 0 ", "no name" } },
      { 4, { { "0", "u32", "a" } }, { "'a'", "offset" } },
      { 8, { { 0, "u32", "a" }, { 4, "u32", "a" } }, { "'a'", "0x4", "twice" } },
      { 12, { { 0, "u32[]", "a" }, { 4, "u64", "b" } }, { "'a'", "must be the last" } },
      { 4, { { 0, "u32", "a", value = 1.5 } }, { "value" } },
      { 0, {}, { "a size and fields" } },
    }
    for k, row in ipairs(WRONG) do
      it(("nothing wrong: %d, %s"):format(k, row[3][1]), function()
        local ok, why = pcall(function()
          return struct("wrong", { size_bytes = row[1] })(row[2])
        end)
        assert.is_false(ok)
        for _, part in ipairs(row[3]) do
          assert.is_truthy(tostring(why):find(part, 1, true), ("no %s in: %s"):format(part, why))
        end
        assert.matches("layout_spec.lua:%d+", tostring(why))
      end)
    end

    it("no unknown key and no checksum that is not there", function()
      assert.error_matches(function() struct("a", { size_byets = 4 }) end,
        "unknown key 'size_byets'")
      assert.error_matches(function()
        struct("a", { size_bytes = 4, crc32c = "sum" }) { { 0, "u32", "x" } }
      end, "checksum field 'sum'")
      assert.error_matches(function()
        struct("a", { size_bytes = 8, crc32c = "x" }) { { 0, "u64", "x" } }
      end, "one field of 4 bytes")
    end)
  end)

  describe("encodes", function()
    it("defaults and magic numbers where nothing is given", function()
      assert.equal("\0\0\0\7" .. ("\0"):rep(12), point:encode {})
      local values, intact = header:decode(header:encode {})
      assert.is_true(intact)
      assert.int(values.magic, 0x31415926)
      assert.int(values.one.x, 7)
      assert.int(#values.points, 1)
    end)

    it("integers to the edges of their width", function()
      for bits = 8, 64, 8 do
        if bits & bits - 1 == 0 then
          local one = struct("one", { size_bytes = bits // 8 }) { { 0, "u" .. bits, "v" } }
          local top = bits == 64 and -1 or (1 << bits) - 1
          for _, v in ipairs { 0, 1, top, top >> 1, bits == 64 and MIN or top // 2 + 1 } do
            assert.int(one:decode(one:encode { v = v }).v, v)
          end
          assert.int(one:decode(one:encode { v = -1 }).v, top)
          if bits < 64 then
            for _, v in ipairs { top + 1, -(top // 2 + 1) - 1, MAX, MIN } do
              local ok, why = pcall(one.encode, one, { v = v })
              assert.is_false(ok)
              local part = ("field 'v' of 'one': %d does not fit %d bits"):format(v, bits)
              assert.is_truthy(why:find(part, 1, true), why)
            end
          end
        end
      end
    end)

    it("nothing that its fields cannot hold, naming the field", function()
      for pattern, values in pairs {
        ["field 'x' of 'point': 1.5 is a float"] = { x = 1.5 },
        ["field 'x' of 'point': 1e%+15 is a float"] = { x = 1e15 },
        ["field 'x' of 'point': expected an integer, got string"] = { x = "1" },
        ["field 'z' of 'point': 3 elements do not fit 2"] = { z = { 1, 2, 3 } },
        ["field 'z' of 'point': expected a list"] = { z = 1 },
        ["field 'z' of 'point': 256 does not fit 8 bits"] = { z = { 0, 256 } },
        ["field 'x' of 'point': index // 2 is not affine in the index %(.*layout_spec.lua:%d+%)"] =
          { x = symbol.new() // 2 },
        ["'point' has no field 'fra'; did you mean 'far'%?"] = { fra = 1 },
        ["'point' has no field '1'"] = { 5 },
      } do
        local ok, why = pcall(function() point:encode(values) end)
        assert.is_false(ok, pattern)
        assert.matches(pattern, why)
        assert.matches("layout_spec.lua:%d+: ", why)
      end
      for pattern, values in pairs {
        ["field 'label' of 'header': 9 bytes do not fit 8"] = { label = "123456789" },
        ["field 'label' of 'header': expected a string, got number"] = { label = 1 },
        ["field 'id' of 'header': 'no' is no UUID"] = { id = "no" },
        ["field 'points' of 'header': 2 elements do not fit 1"] = { points = { {}, {} } },
        ["field 'points' of 'header': expected a table of values, got number"] = { points = { 5 } },
        ["field 'one' of 'header': expected a table of values, got string"] = { one = "x" },
        ["field 'points' of 'header': 'point' has no field 'xx'"] = { points = { { xx = 1 } } },
        ["field 'one' of 'header': 'point' has no field 'faar'; did you mean 'far'%?"] =
          { one = { faar = 1 } },
        ["field 'x' of 'point': expected an integer, got boolean"] = { points = { { x = true } } },
      } do
        local ok, why = pcall(function() header:encode(values) end)
        assert.is_false(ok, pattern)
        assert.matches(pattern, why)
      end
      assert.error_matches(function() point:encode(5) end, "the values are a table")
      assert.error_matches(function() point:encode({}, 17) end,
        "16 bytes long; it cannot be placed as 17")
      assert.error_matches(function() header:encode({}, 63) end, "at least 64 bytes long")
    end)

    it("a checksum over all of an extended one", function()
      local short, long = header:encode({}, 64), header:encode({}, 4096)
      assert.is_not.equal(short:sub(5, 8), long:sub(5, 8))
      assert.is_true(with_checksum(header, long) == long)
      assert.is_true(select(2, header:decode(long, 0, 4096)))
      assert.is_false(select(2, header:decode(long, 0, 64)))
    end)

    it("checksums of either kind, any seed and byte order", function()
      math.randomseed(SEED)
      for case = 1, 40 do
        local endian = case % 2 == 0 and "big" or "little"
        local of = struct("sum", { size_bytes = 40, endian = endian, checksum = {
          field = "sum", kind = case % 3 == 0 and "crc32" or "crc32c",
          seed = math.random(0, 0xffffffff), xor_out = math.random(0, 0xffffffff) } }) {
          { 0, "u64[2]", "before" }, { 16, "u32", "sum" }, { 20, "bytes[20]", "behind" },
        }
        check_round_trip(of, 40, ("seed %d case %d"):format(SEED, case))
      end
    end)

    it("the standard CRCs of the standard text", function()
      for kind, crc in pairs { crc32c = 0xe3069283, crc32 = 0xcbf43926 } do
        assert.int(crc_bitwise(kind, 0xffffffff, "123456789") ~ 0xffffffff, crc)
      end
    end)
  end)

  describe("decodes", function()
    it("refuses what is too short, or outside", function()
      assert.has_error(function() point:decode(("x"):rep(15)) end)
      assert.has_error(function() point:decode(("x"):rep(16), 1) end)
      assert.has_error(function() point:decode(("x"):rep(16), -1) end)
      assert.has_error(function() point:decode(("x"):rep(16), 0, 15) end)
      assert.has_error(function() point:decode(("x"):rep(16), MAX) end)
      assert.has_error(function() point:decode(5.5) end)
      assert.int(point:decode(("\1"):rep(17), 1).y, 0x0101)
    end)

    it("a label up to its first zero byte", function()
      local bytes = header:encode { label = "ab" }
      assert.equal("ab", header:decode(bytes).label)
      assert.equal("12345678", header:decode(header:encode { label = "12345678" }).label)
    end)

    it("a list of one as a list", function()
      local of = struct("list", { size_bytes = 4 }) { { 0, "u32[1]", "v" } }
      assert.same({ v = { 9 } }, of:decode(of:encode { v = { 9 } }))
    end)
  end)

  describe("places", function()
    it("at an offset that is one", function()
      for _, off in ipairs { -1, 1.5, "0", {} } do
        assert.error_matches(function() point:at(off) end,
          "point: an offset is an integer of bytes")
      end
      assert.error_matches(function() point:at() end, "an offset is an integer")
      assert.is_true(layout.is_placed(point:at(0)))
      assert.is_false(layout.is_placed(point))
      assert.is_false(layout.is_placed {})
    end)

    it("and flattens lists of them", function()
      local a, b, c = point:at(0), point:at(16), layout.bytes(32, "abc")
      assert.same({ a, b, c }, layout.flatten(a, { b, { c } }))
      assert.same({ a }, layout.flatten(nil, a, nil))
      assert.same({}, layout.flatten())
      assert.error_matches(function() layout.flatten(a, 5) end, "expected structures placed with "
        .. "layout:at, got number")
      assert.error_matches(function() layout.flatten { a, { point } } end, "got table")
    end)
  end)

  describe("of XFS", function()
    for _, entry in ipairs(layouts_of(ondisk)) do
      local of = entry.layout
      it(entry.name .. " decodes what it encodes", function()
        math.randomseed(SEED)
        local sizes = of.extensible and { of.size_bytes, 512, 1024, 4096 } or { of.size_bytes }
        for case, size_bytes in ipairs(sizes) do
          if size_bytes >= of.size_bytes then
            for round = 1, 3 do
              local label = ("seed %d case %d round %d"):format(SEED, case, round)
              check_round_trip(of, size_bytes, label)
            end
          end
        end
      end)
    end
  end)
end)
