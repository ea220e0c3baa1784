# Functions that find and install missing Debian packages. Sourced by tools/setup,
# dev/check_a64fx, dev/check_debian13 and dev/check_pip_torch, after stages.sh.
# shellcheck shell=bash

# missing_packages PACKAGE...: prints those that are not installed, one per line.
missing_packages() {
  local package status
  for package in "$@"; do
    status=$(dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null || true)
    grep -qx installed <<<"$status" || printf '%s\n' "$package"
  done
}

# cannot TEXT...: like `die`, with status 77: the packages cannot be installed here.
cannot() {
  (die "$@") || exit 77
}

# logged_fetch LOG COMMAND...: like `logged`, but writes to LOG even on a terminal. If
# COMMAND fails, the script ends. The status is 77 if apt could not fetch a file from a
# mirror (unreachable, overloaded, or without the file). It is 1 for a package that no
# list has, a package that cannot be configured, or a full disk.
logged_fetch() {
  local -r theirs="^[EW]: (Failed to fetch|The repository '.*' does not have a Release file)"
  local -r ours='^E: Sub-process|No space left on device|Permission denied|Read-only file system'
  logged "$@" | cat || {
    if grep -qE "$theirs" "$1" && ! grep -qE "$ours" "$1"; then exit 77; fi
    exit 1
  }
}

# unless_failed STATUS TEXT...: calls `unavailable TEXT...` of the sourcing script if STATUS
# is 77; otherwise ends the script with STATUS.
unless_failed() {
  [[ $1 == 77 ]] || exit "$1"
  unavailable "${@:2}"
}

# install_packages ASSUME_YES PACKAGE...: installs the packages. Without root it uses sudo,
# after asking unless ASSUME_YES is `true`. If it fails, the script ends, with status 77 if
# the packages cannot be fetched or the user may not install them.
install_packages() {
  local assume_yes=$1 answer
  local -a root=()
  shift
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null ||
      cannot "you are not root, and sudo is not installed. Run as root: apt-get install $*"
    if ! $assume_yes; then
      [[ -t 0 ]] ||
        cannot "installing needs sudo, but there is no terminal to ask on." \
          "Run 'tools/${0##*/} --yes', or as root: apt-get install $*"
      read -r -p 'Install them with sudo apt-get? [y/N] ' answer
      case $answer in
        y | Y | yes | Yes) ;;
        *) cannot "nothing was installed. To do it yourself: sudo apt-get install $*" ;;
      esac
    fi
    root=(sudo)
  fi
  stage "apt-get update, and install"
  logged_fetch build/log/apt.txt apt_get_install "$@"
}

# apt_get_install PACKAGE...: uses the array `root` of install_packages.
apt_get_install() {
  "${root[@]}" apt-get update &&
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "$@"
}

# debian_mirror: prints the address of the mirror that this machine's apt uses for its
# Debian release; if there is none, Debian's public mirror.
debian_mirror() {
  local suite mirror
  # shellcheck source=/dev/null
  suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 2>/dev/null |
    awk -v suite="$suite" '$2 == suite && !seen++ {print $1}') || mirror=
  printf '%s' "${mirror:-http://deb.debian.org/debian}"
}
