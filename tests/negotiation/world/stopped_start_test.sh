#!/usr/bin/env bash
# Checks the messages and the exit code if a rank is stopped before it starts.
# Usage:
#   stopped_start_test.sh MPIRUN STOPPED_START before_mpi|before_hvdlite
set -uo pipefail
mpirun=$1 program=$2 moment=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'failed: %s\n' "$*" >&2
  cat "$scratch/output" >&2
  exit 1
}

HVDLITE_START_TIMEOUT_SECONDS=2 "$mpirun" 2 "$program" "$moment" \
  >"$scratch/output" 2>&1
status=$?
[[ $status == 75 ]] || fail "mpirun ended with status $status, not 75"
where='MPI_Init_thread, where it waits for processes that'
[[ $moment == before_hvdlite ]] &&
  where='the check that all ranks have started, where it waits for rank 1 to call'
for severity in warning error; do
  grep -q " rank 0 pid [0-9]* hvdlite $severity\] rank 0 (.*) has been .* is in $where" \
    "$scratch/output" || fail "the $severity does not name what the rank waits for"
done
[[ $(grep -c 'ending the process' "$scratch/output") == 1 ]] ||
  fail "the end of the process is not logged exactly once"
