#!/usr/bin/env bash
# Checks the messages about a rank that the others wait for. Usage:
#   hang_test.sh MPIRUN HANG asleep|stopped
set -uo pipefail
mpirun=$1 program=$2 how=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'failed: %s\n' "$*" >&2
  cat "$scratch/output" >&2
  exit 1
}
# The output must have a line that matches.
expect() {
  grep -Eq -- "$1" "$scratch/output" || fail "no line has '$1'"
}

HVDLITE_STALL_WARNING_SECONDS=1 HVDLITE_STALL_FAILURE_SECONDS=8 \
  "$mpirun" 2 "$program" "$how" >"$scratch/output" 2>&1
status=$?
[[ $status == 4 ]] || fail "mpirun ended with status $status, not 4"
expect "the wait has ended: UNAVAILABLE: .*'validation' has waited"
expect "^\[20[-0-9]+ [0-9:.]+ \S+ rank 0 pid [0-9]+ hvdlite warning\] 'validation' has waited"
if [[ $how == stopped ]]; then
  expect 'rank 1 \(.*\): does not answer; its process is stopped \(T\)'
  exit
fi
expect '^  rank 1 \(.*, process [0-9]+\) sleeps in pause.*; last finished .together'
expect '^  rank 1:$'
expect '^      #[0-9]+ ValidateOnOneRankAlone\(\) \(hang\)$'
[[ $(grep -c 'what all 2 ranks are doing (requested by SIGUSR2' "$scratch/output") == 1 ]] ||
  fail "the report of all ranks is not logged exactly once"
expect '^  rank 0 \(.*, process [0-9]+\) .*; last submitted '
