local brim = require "brim"
local help = require "brim.help"
local repl = require "brim.repl"
require "spec.helper"

describe("completion", function()
  local env = { brim = brim, value = { alpha = 1, alps = { x = 1 }, beta = print, ["a b"] = 1 },
    handle = io.stdout }

  it("offers names, keywords and fields, and where the word begins", function()
    local words, start = repl.complete("x = val", env)
    assert.same({ "value" }, words)
    assert.equal(5, start)
    assert.same({ "repeat", "return" }, repl.complete("re", env))
    assert.same({ "value.alpha", "value.alps" }, (repl.complete("print(value.al", env)))
    assert.same({ "value.alps.x" }, (repl.complete("value.alps.", env)))
  end)

  it("offers only methods after a colon", function()
    assert.same({ "value:beta" }, (repl.complete("value:", env)))
    assert.same({ "handle:seek", "handle:setvbuf" }, (repl.complete("handle:se", env)))
  end)

  it("knows modules that are not loaded yet", function()
    assert.same({ "brim.json" }, (repl.complete("brim.js", env)))
  end)

  it("stays calm with what is none", function()
    assert.same({}, (repl.complete("nothing.at.all", env)))
    assert.same({}, (repl.complete("value.alpha.x", env)))
    assert.same({}, (repl.complete("x = 'tex", env)))
    assert.is_true(#repl.complete("", env) > 10)
  end)

  it("offers what begins with _ only to those who type it", function()
    local names = { _hidden = 1, shown = 2 }
    assert.is_nil((" " .. table.concat(repl.complete("", names), " ")):find(" _", 1, true))
    assert.same({ "_hidden" }, (repl.complete("_h", names)))
  end)

  it("runs nothing but __index of known chains, and survives those that raise", function()
    local bad = setmetatable({}, { __index = function() error("no") end })
    assert.same({}, (repl.complete("bad.x.", { bad = bad })))
  end)
end)

describe("help", function()
  it("finds functions of Lua and of C, modules, recipes and handles", function()
    assert.matches("^brim%.bytes%.format%(n_bytes%)\n\nFormat a size", help.text(brim.bytes.format))
    assert.matches("^core%.add%(a, b%)\n\nAdd two integers", help.text(require("brim.core").add))
    assert.matches("^brim%.opts\n\nbrim%.opts: option tables.*brim%.opts%.check  Check an option",
      help.text(require "brim.opts"))
    local r = brim.recipe { name = "x", doc = "Do x.", run = print }
    assert.matches("Usage: brim x", help.text(r))
    local d <close> = brim.device.null("1m")
    assert.matches("^brim%.device\n\nAn open target.*:read  Read a range", help.text(d))
  end)

  it("finds things by name", function()
    assert.equal(help.text(brim.bytes.format), help.text("bytes.format"))
    assert.equal(help.text(brim.bytes.format), help.text("brim.bytes.format"))
    assert.matches("^device:read%(off_bytes, len_bytes%)", help.text("device:read"))
    assert.is_nil(help.text("no.such.thing"))
    assert.is_nil(help.text(print))
    assert.is_nil(help.text(7))
  end)

  it("makes a summary of the first sentence", function()
    assert.equal("Do it now", help.summary("Do it\nnow. Then rest.\n@param x y"))
    assert.equal("Do it", help.summary("Do it.\n@param x y"))
    assert.equal("Do it", help.summary("Do it"))
  end)
end)
