#!/usr/bin/env bash
# Clean used filesystems must be silent: clean.sh DIRECTORY FIRST COUNT makes COUNT images with age.sh,
# of options that follow from the seed, and checks each (and what it was halfway) with xfs_repair -n
# and brim check. Prints every disagreement. Needs root. BRIM: the program, else build/brim.
set -uo pipefail
dir=$1 first=$2 count=$3
here=$(cd "$(dirname "$0")" && pwd)
brim=${BRIM:-build/brim}
options=(
  "" "-m rmapbt=1" "-m rmapbt=1,reflink=0" "-m reflink=0" "-m rmapbt=1 -b size=1024 -d agsize=70m -l size=64m"
  "-b size=1024 -d agcount=4" "-m finobt=0,reflink=0 -b size=2048" "-i sparse=0" "-i size=1024 -m rmapbt=1"
  "-i nrext64=1 -m rmapbt=1" "-s size=4096 -m rmapbt=1" "-m inobtcount=0,bigtime=0" "-n size=16k"
  "-n size=8k -m rmapbt=1" "-m rmapbt=1 -b size=2048 -i size=1024" "-d agsize=90m -l size=64m -m rmapbt=1,reflink=0"
)
silent=0 alarms=0 odd=0
for ((seed = first; seed < first + count; seed++)); do
  o=${options[seed % ${#options[@]}]}
  # shellcheck disable=SC2086
  if ! SIZE=$((500 + seed % 7 * 100))m FILES=$((500 + seed * 7919 % 9000)) \
    "$here/age.sh" "$dir/clean-$first" "$seed" $o >"$dir/clean-$first.log" 2>&1; then
    echo "seed $seed ($o): not made: $(tail -n 1 "$dir/clean-$first.log")"
    odd=$((odd + 1))
    continue
  fi
  for image in "$dir/clean-$first" "$dir/clean-$first.old"; do
    theirs=0 ours=0
    xfs_repair -n -P -f "$image" >"$dir/clean-$first.log" 2>&1 || theirs=$?
    said=$("$brim" check xfs "$image" 2>&1) || ours=$?
    if [ $theirs -ne 0 ]; then
      odd=$((odd + 1))
      echo "seed $seed ($o): xfs_repair $theirs, brim $ours"
    elif [ $ours -ne 0 ]; then
      alarms=$((alarms + 1))
      echo "FALSE ALARM seed $seed ($o): $said"
    else
      silent=$((silent + 1))
    fi
  done
done
rm -f "$dir/clean-$first" "$dir/clean-$first.old" "$dir/clean-$first.log"
echo "$silent silent, $alarms false alarms, $odd not clean or not made"
[ $alarms -eq 0 ]
