#!/usr/bin/env bash
# usage: package_test.sh CMAKE BUILD_DIR
# Packs BUILD_DIR as a Debian package and checks what that depends on. It stays in
# BUILD_DIR/tested_package, for install_test.sh and deb_test.sh. Exit status 77 where
# cpack makes no Debian package.
set -euo pipefail
cmake=$1 build=$2
package=$build/tested_package
rm -rf "$package"

if ! command -v dpkg-deb >/dev/null || ! grep -q 'CPACK_GENERATOR "DEB"' "$build/CPackConfig.cmake"; then
  echo "No Debian package is made of this build"
  exit 77
fi
# Beside its tree: BUILD_DIR's own package stays as it is.
(cd "$build" && "${cmake%cmake}cpack" -G DEB -B "$package" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip)
rm -r "$package/_CPack_Packages"
depends=$(dpkg-deb --field "$package"/hvdlite_*.deb Depends)
for needed in libtorch-dev '(openmpi-bin|mpich)' 'libtorch[0-9.]+(t64)?' 'lib(openmpi|mpich)[0-9]+(t64)?' 'libc6'; do
  if ! grep -qE "(^|, )$needed( |,|\$)" <<<"$depends"; then
    echo "FAILED: the package does not depend on $needed, but on $depends"
    exit 1
  fi
done
