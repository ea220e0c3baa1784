#!/usr/bin/env bash
# usage: deb_test.sh CMAKE BUILD_DIR
# Packs BUILD_DIR as a Debian package, installs that with apt in a Debian that has nothing
# else but what it depends on, a compiler and CMake, builds the program in downstream/
# there, and trains on 1 process and 2 ranks. Exit status 77 where there can be no such Debian.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
# shellcheck source=tools/shell/stages.sh
source tools/shell/stages.sh
# shellcheck source=tools/shell/packages.sh
source tools/shell/packages.sh
# shellcheck source=tools/shell/debian.sh
source tools/shell/debian.sh
cmake=$1 build=$2

unavailable() {
  printf 'No Debian here: %s\n' "$*"
  exit 77
}

reason=$(why_no_debian)
[[ -z $reason ]] || unavailable "$reason"
grep -q 'CPACK_GENERATOR "DEB"' "$build/CPackConfig.cmake" || unavailable "this is none"
scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT
# shellcheck source=/dev/null
suite=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")

(cd "$build" && "${cmake%cmake}cpack" -G DEB -B "$scratch/package" \
  -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip)
deb=$(echo "$scratch"/package/hvdlite_*.deb)
stage "Making a Debian $suite with ${deb##*/}"
(make_debian "$suite" "$scratch/root" "$scratch/make.txt" "g++,cmake,make,mount,$deb") ||
  unless_failed $? "it could not be fetched from $(debian_mirror)"

stage "Building and training there"
(enter_debian "$scratch/root" "$here:/tests" bash -euc '
  cmake -S /tests/downstream -B /build -DREADME_TRAINER=/tests/downstream/main.cc
  cmake --build /build --target downstream_trainer
  export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  /build/downstream_trainer --expect-size 1
  hvdliterun -np 2 --oversubscribe /build/downstream_trainer --expect-size 2
  hvdliterun --version')
