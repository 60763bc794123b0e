#!/usr/bin/env bash
# Clean used filesystems must be silent: clean.sh DIRECTORY FIRST COUNT makes COUNT images with age.sh,
# of options that follow from the seed, and checks each (and what it was halfway) with xfs_repair -n
# and brim check; the oldest and the newest tools make them. Prints every disagreement. Needs root.
# BRIM: the program, else build/brim.
set -uo pipefail
dir=$1 first=$2 count=$3
here=$(cd "$(dirname "$0")" && pwd)
brim=${BRIM:-build/brim}
# shellcheck source=spec/campaign/options
source "$here/options"
# The oldest and the newest generation: VERSION MKFS REPAIR.
tools=$("${LUA:-lua5.4}" "$here/tools.lua")
read -r _ old_mkfs old_repair <<<"$(head -n 1 <<<"$tools")"
read -r version new_mkfs new_repair <<<"$(tail -n 1 <<<"$tools")"
silent=0 alarms=0 odd=0
for ((seed = first; seed < first + count; seed++)); do
  n=$((seed % (${#old[@]} + ${#new[@]})))
  if [ $n -lt ${#old[@]} ]; then
    o=${old[n]} MKFS=$old_mkfs repair=$old_repair
  elif [ "$new_mkfs" = "$old_mkfs" ]; then
    o=${old[n % ${#old[@]}]} MKFS=$old_mkfs repair=$old_repair
  else
    o=${new[n - ${#old[@]}]} MKFS=$new_mkfs repair=$new_repair
  fi
  # shellcheck disable=SC2086
  if ! SIZE=$((500 + seed % 7 * 100))m FILES=$((300 + seed * 7919 % 3000)) MKFS=$MKFS \
    "$here/age.sh" "$dir/clean-$first" "$seed" $o >"$dir/clean-$first.log" 2>&1; then
    echo "seed $seed ($o): not made: $(tail -n 1 "$dir/clean-$first.log")"
    odd=$((odd + 1))
    continue
  fi
  for image in "$dir/clean-$first" "$dir/clean-$first.old"; do
    theirs=0 ours=0
    "$repair" -n -P -f "$image" >"$dir/clean-$first.log" 2>&1 || theirs=$?
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
echo "$silent silent, $alarms false alarms, $odd not clean or not made (newest tools: $version)"
[ $alarms -eq 0 ] && [ $silent -gt 0 ]
