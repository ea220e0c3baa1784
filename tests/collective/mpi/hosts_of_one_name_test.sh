#!/usr/bin/env bash
# Ranks in containers and on machines that all have one name. Usage:
#   hosts_of_one_name_test.sh MPIRUN MPI_LIFE_TEST
set -uo pipefail
mpirun=$1 program=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'failed: %s\n' "$*" >&2
  cat "$scratch/output" >&2
  exit 1
}

cat /proc/sys/kernel/random/uuid >"$scratch/boot_id"
cat >"$scratch/machine" <<SCRIPT
mount --bind "$scratch/boot_id" /proc/sys/kernel/random/boot_id && exec "$program" hosts
SCRIPT
unshare --ipc --mount sh -c "mount --bind '$scratch/boot_id' /proc/sys/kernel/random/boot_id" \
  2>"$scratch/output" || { echo "no namespaces: $(cat "$scratch/output")"; exit 77; }

# Two ranks here, one in a container, and two on what looks like another machine.
"$mpirun" 1 "$program" hosts : -np 1 unshare --ipc "$program" hosts \
  : -np 2 unshare --mount sh "$scratch/machine" : -np 1 "$program" hosts \
  >"$scratch/output" 2>&1 || fail "mpirun ended with status $?"
name=$(hostname)
diff - "$scratch/output" <<EXPECTED || fail 'the hosts are others'
rank 0: host 0 of 3, $name
rank 1: host 1 of 3, $name
rank 2: host 2 of 3, $name#2
rank 3: host 2 of 3, $name#2
rank 4: host 0 of 3, $name
EXPECTED
