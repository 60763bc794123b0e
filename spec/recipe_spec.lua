local core = require "brim.core"
local recipe = require "brim.recipe"
require "spec.helper"

local function make(extra)
  local fields = {
    name = "fill", doc = "Fill it.",
    args = {
      { "path", type = "path", required = true, doc = "mount point" },
      { "limit", type = "int", default = 3 },
      { "--leave-bytes", type = "bytes", default = "64m", doc = "free space to leave" },
      { "--force", type = "bool", doc = "do" },
      { "--sync", type = "bool", default = true },
    },
    run = function(a) return a end,
  }
  for k, v in pairs(extra or {}) do
    fields[k] = v
  end
  return recipe(fields)
end

describe("brim.recipe", function()
  it("makes the same object by either name", function()
    local fields = { name = "x", doc = "X.", run = print }
    assert.is_true(recipe.is(recipe(fields)))
    assert.is_true(recipe.is(recipe.new(fields)))
    assert.is_false(recipe.is(fields))
    assert.equal("recipe x: X.", tostring(recipe(fields)))
  end)

  it("refuses a wrong one, blaming its file", function()
    local here = debug.getinfo(1, "l").currentline + 1
    local ok, why = pcall(function() recipe { name = "x", doc = "X.", rum = print } end)
    assert.is_false(ok)
    assert.matches(("recipe_spec.lua:%d: brim.recipe: unknown option 'rum'"):format(here), why, 1,
      true)
    assert.has_error(function() make { args = { { "--x", type = "byte" } } } end)
  end)

  it("parses words by its schema", function()
    local a = assert(recipe.parse(make(), { "/mnt", "--leave-bytes=1g", "--force" }))
    assert.equal("/mnt", a.path)
    assert.int(a.limit, 3)
    assert.int(a.leave_bytes, 1 << 30)
    assert.is_true(a.force)
    assert.is_true(a.sync)
    a = assert(recipe.parse(make(), { "--no-sync", "/mnt", "7", "--leave-bytes", "8191p" }))
    assert.int(a.limit, 7)
    assert.int(a.leave_bytes, 8191 << 50)
    assert.is_false(a.sync)
    assert.is_nil(a.force)
  end)

  it("says in one line what is wrong with words", function()
    local function why(...)
      local a, reason = recipe.parse(make(), { ... })
      assert.is_nil(a)
      assert.is_nil(reason:find("\n", 1, true))
      return reason
    end
    assert.equal("missing argument 'path'", why())
    assert.equal("too many arguments", why("a", "1", "b"))
    assert.equal("unknown option '--leave'; did you mean '--leave-bytes'?", why("a", "--leave=1"))
    assert.equal("argument 'limit': expected an integer, got 'x'", why("a", "x"))
    assert.matches("^option '%-%-leave%-bytes': ", why("a", "--leave-bytes=1PB"))
    assert.equal("argument 'path': expected a path, got an empty string", why(""))
  end)

  it("hands raw words through", function()
    local words = { "-f", "--help" }
    assert.equal(words, recipe.parse(make { raw_args = true }, words))
  end)

  it("knows whether it overwrites something", function()
    assert.is_false(recipe.is_destructive(make(), {}))
    assert.is_true(recipe.is_destructive(make { destructive = true }, {}))
    local r = make { destructive = function(a) return a.target ~= nil end }
    assert.is_false(recipe.is_destructive(r, {}))
    assert.is_true(recipe.is_destructive(r, { target = "/dev/x" }))
  end)

  it("finds nothing under a name that is none", function()
    assert.is_nil(recipe.find("no-such-recipe"))
    assert.is_nil(recipe.find("../scripts/x"))
  end)

  it("finds and lists those of the tree, each with a line of help", function()
    for _, name in ipairs(recipe.names()) do
      local r = recipe.find(name)
      assert.equal(name, r.name)
      assert.is_true(#recipe.help(r) > #r.doc)
    end
  end)
end)

describe("brim.run.drive", function()
  local run = require "brim.run"

  -- Stands for a handle of the core: `steps` steps of one group each.
  local function fake(steps, fails)
    local handle = { steps = 0, closed = false }
    local stats = { engine = "null", groups_done = 0, ios_done = 0, bytes_done = 0,
      elapsed_ns = 1e9, user_cpu_ns = 0, system_cpu_ns = 0, mismatches = 0, latency_p50_ns = 1000,
      latency_p90_ns = 1000, latency_p99_ns = 1000, latency_max_ns = 2000, mean_queue_depth = 1.5 }
    function handle:step(budget_s)
      assert.is_true(budget_s > 0 and budget_s <= 0.1)
      self.steps = self.steps + 1
      stats.groups_done = self.steps
      if fails == self.steps then
        return nil, "an error"
      end
      return self.steps < steps, stats
    end
    function handle:close()
      self.closed = true
    end
    return handle
  end

  it("steps to the end and makes the result", function()
    local result = assert(run.drive(fake(5)))
    assert.is_nil(result.stopped)
    assert.int(result.groups, 5)
    assert.equal("null", result.engine)
    assert.equal(1.0, result.wall_s)
    assert.equal(2e-6, result.latency_max_s)
    assert.same({}, result.mismatches)
    assert.is_true(result.peak_rss_bytes > 0)
    assert.equal("integer", math.type(result.peak_rss_bytes))
  end)

  it("hands an error on", function()
    local result, err = run.drive(fake(5, 2))
    assert.is_nil(result)
    assert.equal("an error", err)
  end)

  it("tells progress with one table, at the end at least", function()
    local seen, calls = {}, 0
    run.drive(fake(5), { progress_interval_s = 0, progress = function(p)
      seen[p] = true
      calls = calls + 1
    end })
    assert.equal(5, calls)
    local tables = 0
    for _ in pairs(seen) do
      tables = tables + 1
    end
    assert.equal(1, tables)
    calls = 0
    run.drive(fake(5), { progress = function() calls = calls + 1 end })
    assert.equal(1, calls)
  end)

  it("is cancelled by false and by nothing else", function()
    local handle = fake(5)
    local result = run.drive(handle, { progress_interval_s = 0, progress = function(p)
      return p.groups_done < 2
    end })
    assert.equal("cancelled", result.stopped)
    assert.int(result.groups, 2)
    result = run.drive(fake(5), { progress_interval_s = 0, progress = function() return nil end })
    assert.is_nil(result.stopped)
  end)

  it("closes the run before an error of the callback goes on", function()
    local handle, err = fake(5), {}
    local ok, raised = pcall(run.drive, handle, { progress_interval_s = 0,
      progress = function() error(err) end })
    assert.is_false(ok)
    assert.equal(err, raised)
    assert.is_true(handle.closed)
  end)

  it("refuses wrong options", function()
    assert.has_error(function() run.drive(fake(1), { progres = print }) end)
    assert.has_error(function() run.drive(fake(1), { progress_interval_s = -1 }) end)
  end)
end)

describe("the process", function()
  it("knows its use of CPU and memory", function()
    local before = core.process_usage()
    local t0 = core.monotonic_s()
    local x = 0
    while core.monotonic_s() - t0 < 0.05 do
      x = x + 1
    end
    local after = core.process_usage()
    assert.is_true(x > 0 and after.user_cpu_s + after.system_cpu_s
      > before.user_cpu_s + before.system_cpu_s)
    assert.is_true(after.peak_rss_bytes > 1 << 20)
  end)
end)
