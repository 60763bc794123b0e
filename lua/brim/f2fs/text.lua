-- brim.f2fs.text: what mkfs.f2fs prints, and a geometry for people. Called by brim.f2fs and the
-- recipe. Units: as mkfs.f2fs prints them.
local M = {}

---The head of what mkfs.f2fs says, before it looks at the target.
---@param o brim.f2fs.CommandLine
---@param version brim.f2fs.Version
---@return string[]
function M.head(o, version)
  local lines = { "", ("    F2FS-tools: mkfs.f2fs Ver: %s (%s)"):format(version.full, version.date),
    "" }
  local function add(fmt, ...)
    lines[#lines + 1] = "Info: " .. fmt:format(...)
  end
  if not o.heap then
    add "Disable heap-based policy"
  end
  add("Debug level = %d", o.debug_level or 0)
  if o.cold then
    add "Add new cold file extension list"
  end
  if o.hot then
    add "Add new hot file extension list"
  end
  if o.label and o.label ~= "" then
    add("Label = %s", o.label)
  end
  add("Trim is %s", o.no_discard and "disabled" or "enabled")
  local has = {}
  for _, name in ipairs(o.features) do
    has[name] = true
  end
  if o.is_android then
    add "Set conf for android"
  end
  if has.casefold then
    add("Enable %s with casefolding", o.encoding and "utf8" or "(null)")
  end
  if has.project_quota then
    add "Enable Project quota"
  end
  if has.compression then
    add "Enable Compression"
  end
  return lines
end

---What mkfs.f2fs says of a volume.
---@param g brim.f2fs.Geometry
---@param o { wanted_sectors?: integer, wanted_sector_bytes?: integer, trimmed?: boolean,
--- kernel: string, quota: integer[], total_sectors?: integer }
---@return string[]
function M.body(g, o)
  local lines = {}
  local function add(fmt, ...)
    lines[#lines + 1] = "Info: " .. fmt:format(...)
  end
  if o.wanted_sectors then
    add("wanted sectors = %d (in %s bytes)", o.wanted_sectors,
      o.wanted_sector_bytes and tostring(o.wanted_sector_bytes) or "18446744073709551615")
    if o.total_sectors then
      add("total device sectors = %d (in %d bytes)", o.total_sectors, g.sector_bytes)
    end
  end
  local sectors = g.size_bytes // g.sector_bytes
  add("Segments per section = %d", g.section_segments)
  add("Sections per zone = %d", g.zone_sections)
  add("sector size = %d", g.sector_bytes)
  add("total sectors = %d (%d MB)", sectors, g.size_bytes >> 20)
  add("zone aligned segment0 blkaddr: %d", g.segment0_block)
  for kind, ino in ipairs(o.quota) do
    if ino > 0 then
      add("add quota type = %d => %d", kind - 1, ino)
    end
  end
  add('format version with\n  "%s"', o.kernel)
  for _, device in ipairs(o.trimmed and g.devices or {}) do
    add("[%s] Discarding device", device.path)
  end
  add("Overprovision ratio = %.3f%%", g.overprovision_percent)
  add("Overprovision segments = %d (GC reserved = %d)", g.overprovision_segments,
    g.reserved_segments)
  add "format successful"
  return lines
end

---A geometry for people.
---@param g brim.f2fs.Geometry
---@return string
function M.geometry(g)
  local areas = { { "superblocks", 0, 2 }, { "checkpoints", g.segment0_block, 1024 },
    { "SIT", g.sit_block, g.sit_segments * 512 }, { "NAT", g.nat_block, g.nat_segments * 512 },
    { "SSA", g.ssa_block, g.ssa_segments * 512 }, { "main", g.main_block, g.main_segments * 512 } }
  local lines = { ("f2fs     %d segments of 2 MiB, %d to a section, %d sections to a zone"):format(
    g.segment_count, g.section_segments, g.zone_sections) }
  for _, area in ipairs(areas) do
    lines[#lines + 1] = ("  %-12s block %-11d %d blocks"):format(table.unpack(area))
  end
  lines[#lines + 1] = ("  overprovision %.3f %%: %d segments, %d of them reserved"):format(
    g.overprovision_percent, g.overprovision_segments, g.reserved_segments)
  lines[#lines + 1] = ("  for files    %d blocks, %d node numbers"):format(g.user_blocks,
    g.max_nids)
  return table.concat(lines, "\n") .. "\n"
end

return M
