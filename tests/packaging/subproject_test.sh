#!/usr/bin/env bash
# usage: subproject_test.sh CMAKE CXX_COMPILER TORCH_DIR PREFIX_PATH
# Configures a user's project that has hvdlite as a part (subproject/), which checks what
# it gets, and installs it before anything is built: nothing of hvdlite's is asked for.
set -euo pipefail
cmake=$1 compiler=$2 torch=$3 prefixes=$4
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$cmake" -G Ninja -S "$here/subproject" -B "$scratch/build" -DHVDLITE_SOURCE="$here/../.." \
  -DCMAKE_CXX_COMPILER="$compiler" -DTorch_DIR="$torch" -DCMAKE_PREFIX_PATH="$prefixes"
"$cmake" --install "$scratch/build" --prefix "$scratch/prefix"
