#!/usr/bin/env bash
# usage: man_pages_test.sh CMAKE BUILD_DIR
# Checks that each installed program has a man page, also in the package of package_test.sh.
set -euo pipefail
cmake=$1 build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$cmake" --install "$build" --prefix "$scratch/usr" >/dev/null
packed=$(for deb in "$build"/tested_package/hvdlite_*.deb; do
  if [[ -f $deb ]]; then dpkg-deb --contents "$deb"; fi
done)
for program in "$scratch"/usr/bin/*; do
  name=${program##*/}
  page=usr/share/man/man1/$name.1
  if ! grep -q "^$name " "$scratch/$page" || ! grep -q '^.SH DESCRIPTION' "$scratch/$page"; then
    echo "FAILED: the man page of $name is missing or incomplete"
    exit 1
  fi
  if [[ -n $packed && $packed != *" ./$page"* ]]; then
    echo "FAILED: the package has no man page of $name"
    exit 1
  fi
done
