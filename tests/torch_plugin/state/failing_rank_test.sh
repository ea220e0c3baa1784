#!/usr/bin/env bash
# Checks the outcome when a rank fails. Usage:
#   failing_rank_test.sh MPIRUN FAILING_RANK TIMELINE_VIEWER stops|shutdown|dies
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
  # hvdliterun must name the rank that failed, not those whose world ended with it, often earlier.
  for how in exits returns throws crashes_in_malloc aborts_in_malloc; do
    "$mpirun" -np 3 --oversubscribe "$program" "$how" >"$scratch/output" 2>&1
    status=$?
    case $how in
      throws | aborts_in_malloc) expected=134 words='by signal 6' ;;
      crashes_in_malloc) expected=139 words='by signal 11' ;;
      *) expected=3 words='with exit code 3' ;;
    esac
    if grep -q 'no sign of life' "$scratch/output"; then
      fail "$how: it does not end"
    fi
    if grep -q "rank 1 on .* failed first, $words" "$scratch/output"; then
      [[ $status == "$expected" ]] ||
        fail "$how: hvdliterun ended with status $status, not $expected"
    else
      # mpirun may have killed it before it could tell; then others tell of it.
      told=$(sed -nE 's/^hvdliterun: rank 1 \(.*; then rank [02] on .* failed, ((by signal|with exit code) [0-9]+).*/\1/p' \
        "$scratch/output")
      [[ -n $told ]] || fail "$how: the rank that failed is not named"
      expected=${told##* }
      if [[ $told == 'by signal '* ]]; then expected=$((128 + expected)); fi
      [[ $status == "$expected" ]] ||
        fail "$how: hvdliterun ended with status $status, not $expected as that rank"
    fi
  done
elif [[ $mode == shutdown ]]; then
  "$mpirun" 3 "$program" stops_in_shutdown >"$scratch/output" 2>&1
  for rank in 0 2; do
    grep -q "rank $rank pid [0-9]* hvdlite warning.*at shutdown: rank 1 (.*) has given no sign of life" \
      "$scratch/output" || fail "rank $rank does not name the rank that stopped"
  done
  # Rank 0 waits separately if it has merged a timeline.
  for trace in '' "$scratch/trace.json"; do
    HVDLITE_TIMELINE=$trace "$mpirun" 3 "$program" stops_in_finalize >"$scratch/output" 2>&1
    status=$?
    # MPICH's mpirun may return the status of the stopped rank that it has killed.
    [[ $status == 75 || $status == 9 ]] || fail "mpirun ended with status $status, not 75"
    grep -q "rank [02] has not come back from .* died or been stopped" "$scratch/output" ||
      fail "the ranks that wait do not tell why they end"
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
