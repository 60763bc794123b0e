local json = require "brim.json"
require "spec.helper"

describe("brim.json", function()
  it("keeps integers exact, both ways", function()
    for _, n in ipairs { 0, 1, -1, 1 << 53, (1 << 53) + 1, math.maxinteger, math.mininteger } do
      assert.equal(("[%d]"):format(n), json.encode { n })
      assert.int(json.decode(("[%d]"):format(n))[1], n)
    end
  end)

  it("sorts keys, so that equal values give equal text", function()
    local t = {}
    for i = 1, 50 do
      t["k" .. i % 7 .. i] = i
    end
    local copy = json.decode(json.encode(t))
    assert.equal(json.encode(t), json.encode(copy))
    assert.equal('{"a":{"b":1,"c":2},"z":[1,2]}',
      json.encode { z = { 1, 2 }, a = { c = 2, b = 1 } })
  end)

  it("has a word for everything but cycles", function()
    assert.equal('{"nan":null}', json.encode { nan = 0 / 0 })
    assert.equal('{"inf":null}', json.encode { inf = 1 / 0 })
    assert.equal("[]", json.encode {})
    assert.equal("{}", json.encode(json.object()))
    assert.matches('^{"f":"function', json.encode { f = print })
    local t = {}
    t.t = t
    assert.has_error(function() json.encode(t) end,
      "brim.json.encode: a table that contains itself has no JSON")
    local twice = { 1 }
    assert.equal('{"a":[1],"b":[1]}', json.encode { a = twice, b = twice })
  end)

  it("says where a text is none", function()
    for _, text in ipairs { "", "{", "nope", "[1,]x", "{} {}" } do
      local v, why = json.decode(text)
      assert.is_nil(v)
      assert.is_string(why)
    end
  end)

  it("puts one entry on a line when asked", function()
    assert.equal('{\n  "a":1\n}', json.encode({ a = 1 }, { indent = true }))
  end)
end)
