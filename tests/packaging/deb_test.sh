#!/usr/bin/env bash
# usage: deb_test.sh BUILD_DIR
# Installs the package of package_test.sh with apt in a Debian with only its dependencies, a
# compiler and CMake. Builds the program in downstream/ there and trains with 1 process and
# with 2 ranks. The exit status is 77 if this machine cannot make a Debian.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
# shellcheck source=tools/shell/stages.sh
source tools/shell/stages.sh
# shellcheck source=tools/shell/packages.sh
source tools/shell/packages.sh
# shellcheck source=tools/shell/debian.sh
source tools/shell/debian.sh
build=$1

unavailable() {
  printf 'No Debian here: %s\n' "$*"
  exit 77
}

reason=$(why_no_debian)
[[ -z $reason ]] || unavailable "$reason"
deb=$(echo "$build"/tested_package/hvdlite_*.deb)
[[ -f $deb ]] || unavailable "there is no package"
if [[ ${2:-} != mounted ]]; then
  exec unshare --mount --propagation private "$here/deb_test.sh" "$build" mounted
fi

scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT
# The Debian has 1.5 GB. In memory it is written and removed faster than on a disk.
if (($(awk '/^MemAvailable:/ {print $2}' /proc/meminfo) > 6 * 1024 * 1024)) &&
  mount -t tmpfs tmpfs "$scratch"; then
  trap 'umount --lazy "$scratch"; rmdir "$scratch"' EXIT
fi
# shellcheck source=/dev/null
suite=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")

stage "Making a Debian $suite with ${deb##*/}"
(make_debian "$suite" "$scratch/root" "$scratch/make.txt" "g++,cmake,make,mount,$deb") ||
  unless_failed $? "its packages could not be fetched from $(debian_mirror)"

stage "Building and training there"
(enter_debian "$scratch/root" "$here:/tests" bash -euc '
  cmake -S /tests/downstream -B /build -DGETTING_STARTED=/tests/downstream/main.cc
  cmake --build /build --target downstream_trainer
  export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  /build/downstream_trainer --expect-size 1
  hvdliterun -np 2 --oversubscribe /build/downstream_trainer --expect-size 2
  hvdliterun --version')
