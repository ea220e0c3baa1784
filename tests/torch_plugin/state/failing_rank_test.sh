#!/usr/bin/env bash
# What is left when a rank fails. Usage:
#   failing_rank_test.sh MPIRUN FAILING_RANK TIMELINE_VIEWER stops|dies
#   failing_rank_test.sh HVDLITERUN FAILING_RANK - named
set -uo pipefail
mpirun=$1 program=$2 viewer=$3 mode=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'failed: %s\n' "$*" >&2
  cat "$scratch/output" >&2
  exit 1
}

if [[ $mode == named ]]; then
  # The rank that fails, not those whose world ends with it, often before it.
  for how in exits returns throws; do
    "$mpirun" -np 3 --oversubscribe "$program" "$how" >"$scratch/output" 2>&1
    status=$?
    expected=3 words='with exit code 3'
    if [[ $how == throws ]]; then expected=134 words='by signal 6'; fi
    if grep -q "rank 1 on .* failed first, $words" "$scratch/output"; then
      [[ $status == "$expected" ]] ||
        fail "$how: hvdliterun ended with status $status, not $expected"
    else
      # mpirun may have killed it before it could tell; then others tell of it.
      grep -Eq "hvdliterun: rank 1 \(.*; then rank [02] on .* failed" "$scratch/output" ||
        fail "$how: the rank that failed is not named"
    fi
  done
elif [[ $mode == stops ]]; then
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
