-- brim.dist and brim.manifest: their forms as text and as values, their refusals, and that a
-- manifest gives a fileset like the tree it was taken from.
local brim = require "brim"
local core = require "brim.core"
local helper = require "spec.helper"

local dist = brim.dist

describe("brim.dist", function()
  local FORMS <const> = {
    ["fixed(4k)"] = dist.fixed "4k",
    ["uniform(1000,9000)"] = dist.uniform(1000, 9000),
    ["log_uniform(4k,4m)"] = dist.log_uniform("4k", "4m"),
    ["log_normal(16k,2,0,1t)"] = dist.log_normal("16k", 2),
    ["log_normal(16k,1.5,8k,1m)"] = dist.log_normal("16k", 1.5, "8k", "1m"),
    ["pareto(4k,1.2,1g)"] = dist.pareto("4k", 1.2, "1g"),
    ["histogram(0:1,4k:50,16k-64k:30)"] = dist.histogram { { 0, 0, 1 }, { "4k", "4k", 50 },
      { from = "16k", to = "64k", weight = 30 } },
  }

  it("reads and writes its text form", function()
    for text, d in pairs(FORMS) do
      assert.equal(text, tostring(d))
      local read, why = dist.parse(text)
      assert.is_nil(why)
      assert.same(d, read)
      assert.is_true(dist.is(read))
    end
  end)

  it("takes other spellings", function()
    assert.same(dist.fixed(4096), dist.parse "4k")
    assert.same(dist.fixed(4096), dist.parse "4096")
    assert.same(dist.log_uniform("4k", "4m"), dist.parse "Log-Uniform( 4k , 4MiB )")
    assert.same(dist.log_normal("16k", 2), dist.parse "log_normal(16k,2)")
    assert.same(dist.fixed(4096), dist.check(4096))
    assert.same(dist.fixed(4096), dist.check { kind = "fixed", min_bytes = 4096 })
  end)

  it("says what is wrong", function()
    for text, why in pairs {
      ["log_unifrom(4k,4m)"] = "did you mean 'log_uniform'",
      ["log_uniform(4k"] = "closing parenthesis",
      ["log_uniform(4k)"] = "write log_uniform(FROM,TO)",
      ["log_uniform(4m,4k)"] = "above the largest",
      ["log_uniform(0,4k)"] = "above 0",
      ["uniform(1,2,3)"] = "write uniform(FROM,TO)",
      ["uniform(1,x)"] = "x",
      ["pareto(4k,much)"] = "'much' is no number",
      ["histogram(4k)"] = "FROM-TO:WEIGHT",
      ["histogram(4k:0)"] = "all 0",
      ["lots"] = "neither a size",
      ["manifest(/nowhere/at/all)"] = "No such file",
    } do
      local d, reason = dist.parse(text)
      assert.is_nil(d, text)
      assert.truthy(reason:find(why, 1, true), ("%s: %s"):format(text, reason))
    end
    assert.error_matches(function() dist.uniform("9k", "1k") end, "above the largest")
    assert.error_matches(function() dist.pareto("4k", "x") end, "expected a number")
    assert.error_matches(function() brim.fill.new { sizes = "9kk" } end, "option 'sizes'")
  end)

  it("draws the quantiles that its name promises", function()
    local d = dist.log_uniform("4k", "4m")
    assert.int(core.dist_value(d, 0), 4096)
    -- The median is the geometric mean; bits are a fraction of 2^64.
    assert.is_true(math.abs(core.dist_value(d, 1 << 63) - 131072) < 10)
    assert.is_true(math.abs(dist.mean(d) / 604519 - 1) < 0.01)
    assert.int(dist.largest(d), 4 << 20)
  end)
end)

describe("brim.manifest", function()
  local function tree()
    local dir = helper.path "tree"
    helper.must("mkdir -p %s/a/b %s/c", dir, dir)
    for i = 1, 40 do
      helper.write(("%s/a/b/n%d.txt"):format(dir, i), ("x"):rep(1000))
    end
    for i = 1, 10 do
      helper.write(("%s/c/i%d.JPG"):format(dir, i), ("y"):rep(50000))
    end
    helper.write(dir .. "/empty\nname", "")
    return dir
  end

  it("tells sizes, depths, extensions and ages", function()
    local m = assert(brim.manifest.take(tree()))
    assert.int(m.files, 51)
    assert.int(m.directories, 3)
    assert.int(m.bytes, 40 * 1000 + 10 * 50000)
    assert.same({ 1, 10, 40 }, m.depths)
    assert.same({ { name = ".txt", weight = 40 }, { name = ".jpg", weight = 10 },
      { name = "", weight = 1 } }, m.extensions)
    assert.int(m.ages.day, 51)
    local n = 0
    for _, bin in ipairs(m.sizes) do
      n = n + bin.weight
      assert.is_true(bin.from <= bin.to)
    end
    assert.int(n, 51)
  end)

  it("is kept, and makes a fileset like the tree", function()
    local path = helper.path "tree.json"
    local out, err, status = helper.brim("manifest", tree(), "--output", path)
    assert.int(status, 0, out .. err)
    local w = brim.fill.new { manifest = path, streams = 1 }
    local o = w.fileset_options
    assert.same({ ".txt", ".jpg", "" }, { o.extensions[1].name, o.extensions[2].name,
      o.extensions[3].name })
    local d = assert(dist.manifest(path))
    local mean = 540000 / 51
    assert.is_true(math.abs(dist.mean(d) / mean - 1) < 0.15, dist.mean(d))
    local r = w:dry_run { files = 5000 }
    assert.is_true(math.abs(r.bytes / r.files / mean - 1) < 0.2)
  end)

  it("refuses what is none", function()
    assert.refuses("ENOTDIR", brim.manifest.take "/nowhere")
    local path = helper.path "no.json"
    helper.write(path, "{}")
    assert.refuses("EUSAGE", brim.manifest.load(path))
    helper.write(path, "{")
    assert.refuses("EUSAGE", brim.manifest.load(path))
  end)
end)
