#!/usr/bin/env bash
# usage: subproject_test.sh CMAKE CXX_COMPILER TORCH_DIR PREFIX_PATH
# Configures a user's project that includes hvdlite (subproject/) and checks what hvdlite
# defines there. Installs the project before anything is built; this must not need hvdlite's files.
set -euo pipefail
cmake=$1 compiler=$2 torch=$3 prefixes=$4
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$cmake" -G Ninja -S "$here/subproject" -B "$scratch/build" -DHVDLITE_SOURCE="$here/../.." \
  -DCMAKE_CXX_COMPILER="$compiler" -DTorch_DIR="$torch" -DCMAKE_PREFIX_PATH="$prefixes"
"$cmake" --install "$scratch/build" --prefix "$scratch/prefix"
