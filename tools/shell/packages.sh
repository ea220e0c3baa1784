# Sourced by tools/setup, dev/check_a64fx, dev/check_debian13 and
# dev/check_pip_torch, after stages.sh: Debian packages that are missing, their
# installation, their mirror.
# shellcheck shell=bash

# missing_packages PACKAGE...: prints those that are not installed, one a line.
missing_packages() {
  local package status
  for package in "$@"; do
    status=$(dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null || true)
    grep -qx installed <<<"$status" || printf '%s\n' "$package"
  done
}

# cannot TEXT...: as `die`, with status 77: this machine cannot have what is missing.
cannot() {
  (die "$@") || exit 77
}

# logged_fetch LOG COMMAND...: as `logged`, with the output in LOG even on a terminal.
# When COMMAND fails the script ends, with status 77 if apt says that a mirror did not
# give it something: because it cannot be reached, is overloaded, or lacks it. A package
# that no list has, one that cannot be configured, or a full disk is not that.
logged_fetch() {
  local -r theirs="^[EW]: (Failed to fetch|The repository '.*' does not have a Release file)"
  local -r ours='^E: Sub-process|No space left on device|Permission denied|Read-only file system'
  logged "$@" | cat || {
    if grep -qE "$theirs" "$1" && ! grep -qE "$ours" "$1"; then exit 77; fi
    exit 1
  }
}

# unless_failed STATUS TEXT...: `unavailable TEXT...`, as the script that sources this has
# it, if STATUS says 77; else ends with STATUS.
unless_failed() {
  [[ $1 == 77 ]] || exit "$1"
  unavailable "${@:2}"
}

# install_packages ASSUME_YES PACKAGE...: as root directly, else with sudo, after
# asking unless ASSUME_YES is `true`. Ends the script where that fails, with status 77
# if they cannot be fetched or this user must not.
install_packages() {
  local assume_yes=$1 answer
  local -a root=()
  shift
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null ||
      cannot "not root, and there is no sudo. Run as root: apt-get install $*"
    if ! $assume_yes; then
      [[ -t 0 ]] ||
        cannot "installing needs sudo, and there is no terminal to ask on." \
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

# apt_get_install PACKAGE...: through the array `root` of install_packages.
apt_get_install() {
  "${root[@]}" apt-get update &&
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "$@"
}

# debian_mirror: prints the address of the mirror from which this machine's apt has
# its release of Debian; where there is none, the one that serves everybody.
debian_mirror() {
  local suite mirror
  # shellcheck source=/dev/null
  suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 2>/dev/null |
    awk -v suite="$suite" '$2 == suite && !seen++ {print $1}') || mirror=
  printf '%s' "${mirror:-http://deb.debian.org/debian}"
}
