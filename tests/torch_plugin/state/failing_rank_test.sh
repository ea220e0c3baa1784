#!/usr/bin/env bash
# What is left when a rank fails. Usage:
#   failing_rank_test.sh MPIRUN FAILING_RANK TIMELINE_VIEWER stops|dies
set -uo pipefail
mpirun=$1 program=$2 viewer=$3 mode=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'failed: %s\n' "$*" >&2
  cat "$scratch/output" >&2
  exit 1
}

if [[ $mode == stops ]]; then
  "$mpirun" 2 "$program" stops >"$scratch/output" 2>&1
  status=$?
  [[ $status == 75 ]] || fail "mpirun ended with status $status, not 75"
  grep -q "allreduce of 'x': rank 1 (.*) has given no sign of life" \
    "$scratch/output" || fail "the message does not name the rank that stopped"
else
  "$mpirun" 2 "$program" "$scratch/trace.json" >"$scratch/output" 2>&1 &&
    fail "mpirun ended well although a rank was killed"
  [[ ! -e $scratch/trace.json ]] || fail "there is a merged trace"
  for trace in trace.json trace.json.rank00001; do
    "$viewer" "$scratch/$trace" >"$scratch/output" 2>&1 ||
      fail "the viewer does not read $trace"
    grep -q '^NEGOTIATE_ALLREDUCE ' "$scratch/output" ||
      fail "$trace has no events"
  done
fi
