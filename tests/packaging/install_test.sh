#!/usr/bin/env bash
# usage: install_test.sh CMAKE BUILD_DIR CXX_COMPILER [COMPILER_LAUNCHER]
# Installs BUILD_DIR to a temporary prefix, builds the program in downstream/ with
# find_package(hvdlite), and trains with 1 process and with 2 ranks. Then does the same with the
# trainer of docs/getting_started.md and the package of package_test.sh, unpacked elsewhere.
set -euo pipefail
cmake=$1 build=$2 compiler=$3 launcher=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix

"$cmake" --install "$build" --prefix "$prefix" >"$scratch/install.txt"

# Search for whole paths, because in a container the path may be as short as "/hvdlite".
# Ignore the LibTorch that dev/check_pip_torch has installed in the build directory.
if grep -rnE "[^}[:alnum:]_.-]($root|$build)(/|[^[:alnum:]_.-]|\$)" "$prefix" --include=*.cmake --include=*.h |
  sed "s|$build/venv/[^\"; )]*||g" | grep -E "[^}[:alnum:]_.-]($root|$build)(/|[^[:alnum:]_.-]|\$)"; then
  echo "FAILED: the installation refers to the source or build directory"
  exit 1
fi
if find "$prefix" -name '*.a' | grep .; then
  echo "FAILED: internal static libraries are installed"
  exit 1
fi

# outside PREFIX BUILD TARGET: builds TARGET of downstream/ with the package in PREFIX.
outside() {
  "$cmake" -G Ninja -S "$here/downstream" -B "$2" \
    -DGETTING_STARTED="$scratch/getting_started.cc" \
    -DCMAKE_PREFIX_PATH="$1" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher"
  "$cmake" --build "$2" --target "$3"
}

# Unpack the package of package_test.sh.
packed=$prefix
for deb in "$build"/tested_package/hvdlite_*.deb; do
  if [[ -f $deb ]]; then
    dpkg-deb --extract "$deb" "$scratch/unpacked"
    packed=$scratch/unpacked/usr
  fi
done

# The newcomers' example must build and run: the data set and the trainer for many ranks.
awk '/^```cpp/ {block = ""; inside = 1; next}
     /^```/ {if (inside && (block ~ /#include/ || block ~ /hvdlite::init/)) printf "%s\n", block; inside = 0}
     inside {block = block $0 "\n"}' "$root/docs/getting_started.md" >"$scratch/getting_started.cc"

outside "$packed" "$scratch/build_packed" getting_started >"$scratch/packed.txt" 2>&1 &
outside "$prefix" "$scratch/build" downstream_trainer
wait $! || {
  cat "$scratch/packed.txt"
  exit 1
}

OMP_NUM_THREADS=1 "$scratch/build/downstream_trainer" --expect-size 1
"$root/tests/testing/mpirun" 2 "$scratch/build/downstream_trainer" --expect-size 2
(cd "$scratch" && "$root/tests/testing/mpirun" 2 build_packed/getting_started) | tee "$scratch/trained.txt"
grep -q '^epoch 4 loss' "$scratch/trained.txt"

version=$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")$/\1/p' \
  "$packed"/lib*/cmake/hvdlite/hvdliteConfigVersion.cmake)
for program in "$packed"/bin/*; do
  name=${program##*/}
  "$program" --help >/dev/null
  if ! "$program" --version | grep -E "^$name (\(hvdlite\) )?$version\$"; then
    echo "FAILED: $name --version does not say $version"
    exit 1
  fi
done
