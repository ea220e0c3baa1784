#!/usr/bin/env bash
# usage: package_test.sh CMAKE BUILD_DIR
# Packs BUILD_DIR as a Debian package and checks its dependencies. The package stays in
# BUILD_DIR/tested_package, for install_test.sh and deb_test.sh. The exit status is 77 if
# cpack makes no Debian package.
set -euo pipefail
cmake=$1 build=$2
package=$build/tested_package
rm -rf "$package"

if ! command -v dpkg-deb >/dev/null || ! grep -q 'CPACK_GENERATOR "DEB"' "$build/CPackConfig.cmake"; then
  echo "cpack makes no Debian package of this build"
  exit 77
fi
# Use another directory, so that a package in BUILD_DIR/package stays as it is.
(cd "$build" && "${cmake%cmake}cpack" -G DEB -B "$package" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip)
rm -r "$package/_CPack_Packages"
depends=$(dpkg-deb --field "$package"/hvdlite_*.deb Depends)
for needed in libtorch-dev '(openmpi-bin|mpich)' 'libtorch[0-9.]+(t64)?' 'lib(openmpi|mpich)[0-9]+(t64)?' 'libc6'; do
  if ! grep -qE "(^|, )$needed( |,|\$)" <<<"$depends"; then
    echo "FAILED: the package does not depend on $needed, but on $depends"
    exit 1
  fi
done
