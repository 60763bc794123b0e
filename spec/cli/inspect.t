Any structure of an XFS, of any size. The image file is one that mkfs would need hours for.

  $ cat > make.lua <<'END'
  > local brim = require "brim"
  > for name, size in pairs { big = "8191p", small = "400m" } do
  >   local plan = assert(brim.xfs.format { size_bytes = size, time_ns = 1700000000123456789,
  >     rmapbt = name == "small", uuid = "01234567-89ab-cdef-0123-456789abcdef" })
  >   assert(plan:save(name .. ".brim"))
  >   if name == "small" then assert(plan:write("small.img")) end
  >   plan:close()
  > end
  > END
  $ brim run make.lua

  $ brim inspect big.brim agf 8000000
  free space header (AGF) of group 8000000, 512 bytes at 8796092989440000512 (0x7a11fff85ee00200)
    magicnum         0x58414746 "XAGF" (right)
    versionnum       1 (right)
    seqno            8000000 (right)                               number of this group
    length           268435455 blocks (right)
    bno_root         1                                             free space by block [group block]
    cnt_root         2                                             free space by size [group block]
    rmap_root        0                                             reverse map [group block]
    bno_level        1
    cnt_level        1
    rmap_level       0
    flfirst          1                                             first free list slot in use
    fllast           4                                             last free list slot in use
    flcount          4 blocks                                      on the free list
    freeblks         268435445 blocks
    longest          268435445 blocks                              longest free extent
    btreeblks        0 blocks                                      of the trees beyond their roots
    uuid             01234567-89ab-cdef-0123-456789abcdef (right)
    rmap_blocks      0 blocks
    refcount_blocks  1 blocks
    refcount_root    5                                             [group block]
    refcount_level   1
    lsn              0
    crc              0xc7dfdf69 (right)
  $ brim inspect small.img
  meta-data=small.img              isize=512    agcount=4, agsize=25600 blks
           =                       sectsz=512   attr=2, projid32bit=1
           =                       crc=1        finobt=1, sparse=1, rmapbt=1
           =                       reflink=1    bigtime=1 inobtcount=1 nrext64=0
  data     =                       bsize=4096   blocks=102400, imaxpct=25
           =                       sunit=0      swidth=0 blks
  naming   =version 2              bsize=4096   ascii-ci=0, ftype=1
  log      =internal log           bsize=4096   blocks=16384, version=2
           =                       sectsz=512   sunit=0 blks, lazy-count=1
  realtime =none                   extsz=4096   blocks=0, rtextents=0
  $ brim inspect big.brim agfl 0
  free list (AGFL) of group 0, 512 bytes at 1536 (0x600)
    in use    slots 1 .. 4                                  according to the AGF
    magicnum  0x5841464c "XAFL" (right)
    seqno     0 (right)                                     number of this group
    uuid      01234567-89ab-cdef-0123-456789abcdef (right)
    lsn       0
    crc       0x2b9a69fb (right)
    bno  -- [group block]
      [0] null  [1] 6  [2] 7  [3] 8  [4] 9  [5..118] null
  $ brim inspect small.img rmapbt 0 | sed -n '12,$p'
    recs: 7 of at most 168
         startblock  blockcount        owner  offset
      1           0           1        -3 fs       0
      2           1           2        -5 ag       0
      3           3           2     -6 inobt       0
      4           5           1        -5 ag       0
      5           6           1  -8 refcount       0
      6           7           6        -5 ag       0
      7          16           8    -7 inodes       0
  $ brim inspect small.img inode 128 | sed -n '1,5p; $p'
  inode 128 (directory), 512 bytes at 65536 (0x10000)
    magic          0x494e "IN" (right)
    mode           040755 drwxr-xr-x (directory)
    version        3 (right)
    format         1 (local)                                     of the data fork: 0 dev 1 local 2 extents 3 btree
    data fork: short-form directory, parent 128, 0 entries (0 with long inode numbers)
  $ brim inspect small.img log | head -6
  internal log
    start  65543         group 2, block 7; byte 209743872
    size   16384 blocks  131072 sectors of 512 bytes
    head   2             sector that is written next
    tail   2             sector that replay begins at
    state  clean         unmounted: nothing to replay
  $ brim inspect small.img block 1:2 | head -1
  cntbt (free space by size) of group 1, leaf at block 2, 4096 bytes at 104865792 (0x6402000)
  $ brim inspect small.img sector 0x10 | head -1
  cntbt (free space by size) of group 0, leaf at block 2, 4096 bytes at 8192 (0x2000)
  $ brim inspect small.img block 9
  block 9 (group 0, block 9): zeros
  000000009000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|
  *
  000000009ff0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|
  $ brim inspect small.img bytes 1k 16
  16 bytes at 1024 (0x400)
  000000000400  58 41 47 49 00 00 00 01  00 00 00 00 00 00 64 00  |XAGI..........d.|
  $ brim inspect small.img agi 0 --raw | head -1
  000000000400  58 41 47 49 00 00 00 01  00 00 00 00 00 00 64 00  |XAGI..........d.|

JSON has exact integers; what is past 2^63-1 is a string.

  $ brim inspect big.brim sb 5 --json | grep -o '"dblocks":[^,]*\|"rbmino":[^,]*\|"intact":[^,]*\|"faults":[^,]*'
  "faults":[]
  "dblocks":2251524935778304
  "rbmino":"18446744073709551615"
  "intact":true

What is wrong with a structure is shown with it.

  $ printf 'XAGE\0\0\0\1\0\0\0\5' | dd of=small.img bs=1 seek=512 conv=notrunc status=none
  $ brim inspect small.img agf 0 | grep -i wrong
    magicnum         0x58414745 "XAGE" (wrong: should be 0x58414746 "XAGF")
    seqno            5 (wrong: should be 0)                        number of this group
    crc              0x* (wrong: should be 0x*) (glob)
    WRONG: magicnum should be 0x58414746 "XAGF"
    WRONG: crc should be 0x* (glob)
    WRONG: seqno should be 0

Against the image file it was written from:

  $ brim verify small.brim small.img
  1 I/Os differ: 4 groups, * (glob)
    groups affected: 1 (0)
    agf.magicnum: group 0, byte 512 should be 1480673094 (0x58414746), is 1480673093 (0x58414745)
    agf.seqno: group 0, byte 520 should be 0, is 5
  [1]
  $ brim verify small.brim small.brim
  the target holds exactly what the plan wrote: 4 groups, * (glob)
  $ brim verify big.brim small.img
  brim verify: small.img has 419430400 bytes, but plan 'xfs' needs 9222246136947933184
  [2]
  $ brim verify small.img small.brim
  brim verify: small.img: this is no brim image
  [2]

Mistakes get one line.

  $ brim inspect big.brim agf 9000000
  brim inspect: group 9000000 is out of range, the groups are 0 .. 8387584
  [2]
  $ brim inspect big.brim afg 1
  brim inspect: unknown structure 'afg'; did you mean 'agf'? (geometry, sb, agf, agi, agfl, bnobt, cntbt, inobt, finobt, rmapbt, refcountbt, inode, log, block, sector, bytes)
  [2]
  $ brim inspect big.brim agf
  brim inspect: 'agf' needs a group's number
  [2]
  $ brim inspect big.brim agf one
  brim inspect: 'agf' takes a group's number, decimal or 0x hexadecimal, not 'one'
  [2]
  $ brim inspect big.brim log 1
  brim inspect: 'log' takes no argument, '1' is too much
  [2]
  $ brim inspect big.brim agf 1 --block 3
  brim inspect: --block goes with a tree (bnobt, ...), not with 'agf'
  [2]
  $ brim inspect big.brim rmapbt 0
  brim inspect: big.brim has no rmapbt: it was made without the feature rmapbt
  [2]
  $ brim inspect big.brim bnobt 0 --block 268435455
  brim inspect: block 268435455 is out of range, the blocks of group 0 are 0 .. 268435454
  [2]
  $ brim inspect make.lua agf 0
  brim inspect: make.lua is no XFS: it has 376 bytes
  [2]
  $ head -c 1m /dev/zero > zeros
  $ brim inspect zeros agf 0
  brim inspect: zeros: the superblock is damaged: its magic number is 0x0; only 'sb' and 'bytes' can be shown
  [2]
  $ brim inspect none sb
  brim inspect: none does not exist
  [2]
  $ brim inspect
  brim inspect: missing argument 'target'
  [2]

The REPL shows the same; fields are values.

  $ brim repl <<'END'
  > fs = brim.xfs.open "big.brim"
  > fs:agf(8000000).freeblks
  > fs:bnobt(8387584).recs
  > fs:agf(9000000)
  > tostring(fs):match "^[^;]*"
  > fs:close()
  > END
  268435445
  { { blockcount = 8387574, startblock = 10 } }
  error: group 9000000 is out of range, the groups are 0 .. 8387584
  "xfs on big.brim: 8387585 groups of 268435455 blocks of 4096 bytes"
