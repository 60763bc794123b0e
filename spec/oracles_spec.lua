-- The reference tools of several generations: found, told apart, and run from any directory.
local helper = require "spec.helper"
local oracles = require "spec.oracles"

describe("oracles", function()
  it("orders versions by their numbers", function()
    for _, row in ipairs { { "6.1.0", "6.13.0" }, { "6.9.0", "6.13.0" }, { "6.13", "6.13.0" },
      { "6.19.0", "7.2.0" }, { "1.15.0", "1.16.0" } } do
      assert.is_true(oracles.is_earlier(row[1], row[2]))
      assert.is_false(oracles.is_earlier(row[2], row[1]))
    end
    assert.is_false(oracles.is_earlier("7.2.0", "7.2.0"))
  end)

  it("says what it has where it has not what is asked for", function()
    local oracle, why = oracles.of("xfs", "0.1")
    assert.is_nil(oracle)
    assert.matches("no mkfs.xfs 0.1 here %(have: [^)]+%); `make oracles`", why)
  end)

  for _, family in ipairs { "xfs", "f2fs", "uml" } do
    it("of " .. family .. ": each version once, the newest last", function()
      local list = oracles[family]()
      for i = 2, #list do
        assert.is_true(oracles.is_earlier(list[i - 1].version, list[i].version))
      end
      assert.equal(list[#list], (oracles.newest(family)))
      for _, oracle in ipairs(list) do
        assert.equal(oracle, (oracles.of(family, oracle.version)))
        assert.is_truthy((oracles.of(family, oracle.version:match "^%d+%.%d+")))
      end
      if #list == 0 then
        return pending((select(2, oracles.newest(family))))
      end
    end)
  end

  for _, oracle in ipairs(oracles.xfs()) do
    it(("XFS %s (%s) makes, checks and shows"):format(oracle.version, oracle.release), function()
      local image = helper.path "image"
      helper.must("cd / && truncate -s 512M %s && %s -q %s && %s -n -P %s", image, oracle.mkfs,
        image, oracle.repair, image)
      assert.equal("dblocks = 131072\n", helper.must("cd / && %s -c 'sb 0' -c 'p dblocks' %s",
        oracle.db, image))
      assert.matches("log tail", helper.must("cd / && %s -t %s", oracle.logprint, image))
      os.remove(image)
    end)
  end

  for _, oracle in ipairs(oracles.f2fs()) do
    it(("F2FS %s (%s) makes, checks and shows"):format(oracle.version, oracle.release), function()
      local image = helper.path "image"
      helper.must("cd / && truncate -s 128M %s && %s -q %s", image, oracle.mkfs, image)
      assert.matches("Done", helper.must("cd / && %s %s", oracle.fsck, image))
      assert.matches("Super block", helper.must("cd / && %s -d 1 %s", oracle.dump, image))
      os.remove(image)
    end)
  end
end)
