-- Every field that brim inspect decodes against what xfs_db says of it: on images that mkfs.xfs
-- made, and on filesystems that the kernel has used, with trees of several levels. #root where it
-- mounts.
local configs = require "spec.xfs_configs"
local helper = require "spec.helper"
local inspect = require "brim.xfs.inspect"
local names = require "spec.inspect_names"
local oracle = require "spec.inspect_oracle"

-- ------------------------------------------------------------------- the walks

-- What is to be compared: query for xfs_db, our view, names.
local function add(list, where, query, view, name_map, prepare)
  list[#list + 1] = { where = where, query = query, view = view, names = name_map or {},
    prepare = prepare }
end

local function settle(image, list)
  local queries = {}
  for i, each in ipairs(list) do
    queries[i] = each.query
  end
  for i, theirs in ipairs(oracle.ask(image, queries)) do
    local each = list[i]
    theirs = each.prepare and each.prepare(theirs) or theirs
    names.compare(each.where, theirs, each.view, each.names)
    local faults = inspect.faults(each.view)
    assert.equal(0, #faults, ("%s: %s"):format(each.where, faults[1]))
  end
  return #list
end

local TYPES <const> = { refcountbt = "refcntbt" }

local function add_tree(list, fs, tree, ag, agbno)
  local view = assert(fs:tree(tree, ag, agbno))
  add(list, ("%s of group %d at %d"):format(tree, ag, view.about.off_bytes),
    { ("daddr %d"):format(view.about.off_bytes >> 9), "type " .. (TYPES[tree] or tree), "p" }, view,
    names.tree(tree, fs))
  for _, child in ipairs(view.ptrs or {}) do
    add_tree(list, fs, tree, ag, child)
  end
  return view.level + 1
end

-- Everything of a group: headers, and all blocks of all its trees. The levels found.
local function add_group(list, fs, ag)
  add(list, "sb " .. ag, { "sb " .. ag, "p" }, assert(fs:sb(ag)))
  add(list, "agf " .. ag, { "agf " .. ag, "p" }, assert(fs:agf(ag)), names.AGF)
  add(list, "agi " .. ag, { "agi " .. ag, "p" }, assert(fs:agi(ag)), names.AGI)
  add(list, "agfl " .. ag, { "agfl " .. ag, "p" }, assert(fs:agfl(ag)), names.AGFL)
  local levels = {}
  for tree, feature in pairs { bnobt = "sparse", cntbt = "sparse", inobt = "sparse",
    finobt = "finobt", rmapbt = "rmapbt", refcountbt = "reflink" } do
    if feature == "sparse" or fs.has[feature] then
      levels[tree] = add_tree(list, fs, tree, ag)
    end
  end
  return levels
end

local function add_bmbt(list, fs, fsblock, where)
  local view = assert(fs:block(fsblock))
  add(list, ("%s, bmbt at %d"):format(where, fsblock), { "fsblock " .. fsblock, "type bmapbtd",
    "p" }, view, names.tree("bmbt", fs))
  for _, child in ipairs(view.ptrs or {}) do
    add_bmbt(list, fs, child, where)
  end
end

local function add_inode(list, fs, ino)
  local view = assert(fs:inode(ino))
  add(list, "inode " .. ino, { "inode " .. ino, "p" }, view, names.INODE, function(theirs)
    return names.without(theirs, "^u3$", "^a$")
  end)
  for _, fork in ipairs { "data_fork", "attr_fork" } do
    for _, child in ipairs(view[fork] and view[fork].ptrs or {}) do
      add_bmbt(list, fs, child, "inode " .. ino)
    end
  end
  return view
end

-- The blocks of a file as xfs_db types them: dblock of the data fork, ablock of the attribute fork.
local function add_block(list, fs, ino, command, offset, fsblock)
  add(list, ("inode %d %s %d"):format(ino, command, offset), { "inode " .. ino,
    ("%s %d"):format(command, offset), "p" }, assert(fs:block(fsblock)), names.DIR, function(theirs)
      theirs = names.renumbered(names.renumbered(theirs, "du"), "bu")
      return names.without(theirs, "%[%d+%]%.free", "^bleaf", "^lbests", "^ltail")
    end)
end

-- ----------------------------------------------------------------------- specs

local FRESH <const> = {
  { 300 << 20, "" }, { 512 << 20, "-m rmapbt=1,reflink=0 -i nrext64=1" },
  { 512 << 20, "-m crc=1,finobt=0,reflink=0 -i sparse=0,size=1024 -L label" },
  { 512 << 20, "-b size=1k -n size=8k -m rmapbt=1" }, { 2 << 30, "-b size=64k -m rmapbt=1" },
  { 1 << 30, "-s size=4k -d su=64k,sw=4 -l su=32k" },
  { 512 << 20, "-m bigtime=0,inobtcount=0,uuid=12345678-9abc-def0-1234-56789abcdef0" },
}

describe("brim.xfs.inspect and xfs_db", function()
  if not helper.has "xfs_db" or not helper.has "mkfs.xfs" then
    pending "xfsprogs are not installed"
    return
  end

  for _, config in ipairs(FRESH) do
    it("agree on a fresh mkfs.xfs " .. config[2], function()
      local image = helper.path "image"
      helper.must("truncate -s %d %s && mkfs.xfs -q %s %s", config[1], image, config[2], image)
      local fs <close> = assert(inspect.open(image))
      local list = {}
      for ag = 0, fs.primary.agcount - 1 do
        add_group(list, fs, ag)
      end
      for ino = fs.primary.rootino, fs.primary.rootino + 63 do
        add_inode(list, fs, ino)
      end
      settle(image, list)
      assert.equal(helper.must("mkfs.xfs -N -f %s %s", config[2], image),
        tostring(assert(fs:geometry())) .. "\n")
      assert.equal(helper.must("xfs_db -r -c info %s", image),
        tostring(assert(fs:geometry())) .. "\n")
      os.remove(image)
    end)
  end
end)

local workspace_shell = [[
set -e
cd "$1"
mkdir d0 d1 d2 small wide && touch small/a small/bb wide/leaf
ln -s short soft && ln -s "$(printf 'long/%.0s' $(seq 1 150))" longlink
mknod dev c 5 77 && mkfifo pipe && fallocate -l 300k pre
dd if=/dev/zero of=big bs=1k count=1500 status=none && cp --reflink=always big copy || cp big copy
sync -f .
]]

local function fill(dir)
  for i = 1, 9000 do
    helper.write(("%s/d%d/file-%d"):format(dir, i % 7 < 5 and 0 or i % 2 + 1, i),
      ("x"):rep(i % 3 == 0 and 1500 or 900))
  end
  for i = 1, 80 do
    helper.write(("%s/wide/name-%d"):format(dir, i), "")
  end
  helper.must("sync -f %s", dir)
  for i = 1, 9000, 2 do
    os.remove(("%s/d%d/file-%d"):format(dir, i % 7 < 5 and 0 or i % 2 + 1, i))
  end
  -- Every other block of a shared file becomes its own.
  local file <close> = assert(io.open(dir .. "/copy", "r+"))
  file:setvbuf "no"
  for i = 0, 1499, 2 do
    file:seek("set", i * 1024)
    file:write "y"
  end
end

-- Attributes are written by xfs_db, which sets these of four sizes.
local function set_attributes(image, attributes)
  for name, commands in pairs(attributes) do
    helper.must("xfs_db -x -c 'path /%s' %s %s", name, commands, image)
  end
end

-- Were all kinds of blocks among them?
local function assert_kinds(list, fs)
  local kinds = { "inode", "dir_block", "dir_data", "dir_leafn", "da_node", "dir_free",
    "attr_leaf", "symlink", fs.primary.blocksize == 1024 and "bmbt" or nil }
  local seen = {}
  for _, each in ipairs(list) do
    seen[each.view.about.what] = true
  end
  for _, kind in ipairs(kinds) do
    assert.is_true(seen[kind], kind .. " was not compared")
  end
end

local function inode_of(image, name)
  return math.tointeger(tonumber(helper.must("xfs_db -r -c 'path /%s' -c 'p v3.inumber' %s", name,
    image):match "%d+\n?$"))
end

describe("brim.xfs.inspect and xfs_db, on what the kernel wrote #root", function()
  if not helper.is_root() or not helper.has "xfs_db" or not helper.has "mkfs.xfs" then
    pending "needs root and xfsprogs"
    return
  end

  local workspace

  setup(function()
    workspace = configs.workspace "inspect"
  end)

  teardown(function()
    workspace:close()
  end)

  local function used(options)
    local image = workspace:path "image"
    helper.must("truncate -s 400m %s && mkfs.xfs -q %s %s", image, options, image)
    local mounted, why = workspace:mount(image)
    if not mounted then
      pending(why)
    end
    do
      local dir <close> = mounted
      helper.must("sh -c %s sh %s", helper.quote(workspace_shell), dir.dir)
      fill(dir.dir)
    end
    set_attributes(image, { ["small/a"] = "-c 'attr_set -u -v 8 tiny' -c 'attr_set -s -v 9 t2'",
      copy = "-c 'attr_set -u -v 900 big' -c 'attr_set -v 5000 huge'" })
    return image
  end

  local function add_file_blocks(list, fs, image, name)
    local ino = inode_of(image, name)
    local view = add_inode(list, fs, ino)
    local extents_of = view.data_fork.extents
    if view.data_fork.ptrs then
      extents_of = {}
      for _, child in ipairs(view.data_fork.ptrs) do
        local leaf = assert(fs:block(child))
        table.move(leaf.recs or {}, 1, #(leaf.recs or {}), #extents_of + 1, extents_of)
      end
    end
    local per = 1 << fs.primary.dirblklog
    for _, e in ipairs(extents_of) do
      for b = 0, e.blockcount - 1, per do
        add_block(list, fs, ino, "dblock", e.startoff + b, e.startblock + b)
      end
    end
    return ino, view
  end

  for _, options in ipairs { "-b size=1k -m rmapbt=1",
    "-b size=1k -m reflink=0,finobt=0 -i sparse=0", "-b size=4k -m rmapbt=1 -i nrext64=1" } do
    it("agree after use of mkfs.xfs " .. options, function()
      local image = used(options)
      local fs <close> = assert(inspect.open(image))
      local list, tallest = {}, {}
      for ag = 0, fs.primary.agcount - 1 do
        for tree, levels in pairs(add_group(list, fs, ag)) do
          tallest[tree] = math.max(tallest[tree] or 0, levels)
        end
      end
      for _, name in ipairs { "d0", "d1", "wide", "longlink" } do
        add_file_blocks(list, fs, image, name)
      end
      for _, name in ipairs { "", "small", "small/a", "soft", "dev", "pipe", "pre", "big" } do
        add_inode(list, fs, inode_of(image, name))
      end
      local ino = inode_of(image, "copy")
      local copy = add_inode(list, fs, ino)
      add_block(list, fs, ino, "ablock", 0, copy.attr_fork.extents[1].startblock)
      local compared = settle(image, list)
      assert_kinds(list, fs)
      assert.is_true(compared > (fs.primary.blocksize == 1024 and 150 or 50), tostring(compared))
      if fs.primary.blocksize == 1024 then
        assert.is_true(tallest.bnobt >= 2 and tallest.cntbt >= 2 and tallest.inobt >= 2)
        assert.is_true(not fs.has.rmapbt or tallest.rmapbt >= 3)
        assert.is_true(not fs.has.reflink or tallest.refcountbt >= 2)
      end
      local said = helper.must("xfs_logprint -t %s", image)
      local log = assert(fs:log())
      assert.equal(("%d %d"):format(log.tail_block, log.head_block),
        ("%s %s"):format(said:match "log tail: (%d+) head: (%d+) state: <CLEAN>"))
      assert.is_true(log.is_clean)
      os.remove(image)
    end)
  end

  it("agree with xfs_logprint on a log that needs replay", function()
    local image = workspace:path "image"
    helper.must("truncate -s 400m %s && mkfs.xfs -q %s", image, image)
    do
      local mounted <close> = assert(workspace:mount(image))
      helper.must("mkdir %s/d && for i in 1 2 3 4 5 6 7 8; do echo $i > %s/d/$i; done", mounted.dir,
        mounted.dir)
      helper.must("sync -f %s && rm %s/d/3 && xfs_io -x -c 'shutdown -f' %s", mounted.dir,
        mounted.dir, mounted.dir)
    end
    local fs <close> = assert(inspect.open(image))
    local log = assert(fs:log())
    local said = helper.must("xfs_logprint -t %s", image)
    assert.equal(("%d %d DIRTY"):format(log.tail_block, log.head_block),
      ("%s %s %s"):format(said:match "log tail: (%d+) head: (%d+) state: <(%u+)>"))
    assert.is_false(log.is_clean)
    assert.same({}, inspect.faults(log))
  end)
end)
