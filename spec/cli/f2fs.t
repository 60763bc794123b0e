An F2FS of any size: as an image file, inspected and checked.

  $ brim mkfs.f2fs -q -r -T 1 -U 01234567-89ab-cdef-0123-456789abcdef -l brim big.brim 34359738360
  brim mkfs.f2fs: warning: only 13977600 files, directories and blocks of addresses fit, one for each 1229 KiB: the table of node addresses is capped at this size; with -i it would be 858923520
  $ brim inspect big.brim
  F2FS on big.brim
    label          "brim"
    uuid           01234567-89ab-cdef-0123-456789abcdef
    features       none
    segments       8388606 of 2 MiB                      1 to a section, 1 sections to a zone
    checkpoints    block 512                             2 segments
    SIT            block 1536                            596 segments
    NAT            block 306688                          120 segments
    SSA            block 368128                          16383 segments
    main           block 8756224                         8371505 segments
    nodes          13977600 at most                      1 in use, 1 of them inodes
    blocks         4282016768 for users                  2 in use
    overprovision  8191 segments                         4008 of them reserved
    checkpoint     version 1804289383, pack 1            umount, compact_sum, nat_bits, trimmed
  $ brim inspect big.brim nat 3
  NAT entry of node 3
    kept in     journal
    other copy  block 306688
    state       inode
    version     0
    ino         3
    block_addr  8756224       0: free [block]
  $ brim inspect big.brim sit 0 | head -5
  SIT entry of segment 0
    kept in       journal
    other copy    block 1536
    blocks        8756224-8756735
    type          hot node                             a log, written up to block 1
  $ brim check big.brim
  8,371,505 segments, 2 valid blocks; 1 nodes, 1 of them inodes; 1 nodes read
  clean

What mkfs.f2fs keeps silent about.

  $ brim mkfs.f2fs -q nids.brim 6731857920
  brim mkfs.f2fs: warning: only 232960 files, directories and blocks of addresses fit, one for each 14448 KiB: the table of node addresses is capped at this size; with -i it would be * (glob)

What is refused, in one line.

  $ brim mkfs.f2fs -O compression small.brim 400000
  brim mkfs.f2fs: -O compression needs extra_attr: -O extra_attr,compression
  [2]
  $ brim mkfs.f2fs -s 128 small.brim 4000000
  brim mkfs.f2fs: device size is not sufficient: 5 zones of 128 segments are left beside the metadata, more than 6 are needed: shrink them (-s, -z)
  [2]
  $ brim mkfs.f2fs -m small.brim 4000000
  brim mkfs.f2fs: -m: brim formats no zoned devices (yet)
  [2]
  $ brim inspect big.brim agf 0
  brim inspect: unknown structure 'agf' (geometry, sb, cp, nat, sit, ssa, node, inode, segmap)
  [2]
