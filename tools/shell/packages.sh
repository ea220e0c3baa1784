# Sourced by tools/setup, tools/check_a64fx and tools/check_debian13, after
# stages.sh: Debian packages that are missing, their installation, their mirror.
# shellcheck shell=bash

# missing_packages PACKAGE...: prints those that are not installed, one a line.
missing_packages() {
  local package status
  for package in "$@"; do
    status=$(dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null || true)
    grep -qx installed <<<"$status" || printf '%s\n' "$package"
  done
}

# install_packages ASSUME_YES PACKAGE...: as root directly, else with sudo, after
# asking unless ASSUME_YES is `true`.
install_packages() {
  local assume_yes=$1 answer
  local -a root=()
  shift
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null ||
      die "not root, and there is no sudo. Run as root: apt-get install $*"
    if ! $assume_yes; then
      [[ -t 0 ]] ||
        die "installing needs sudo, and there is no terminal to ask on." \
          "Run 'tools/${0##*/} --yes', or as root: apt-get install $*"
      read -r -p 'Install them with sudo apt-get? [y/N] ' answer
      case $answer in
        y | Y | yes | Yes) ;;
        *) die "nothing was installed. To do it yourself: sudo apt-get install $*" ;;
      esac
    fi
    root=(sudo)
  fi
  stage "apt-get update"
  logged "build/log/apt-update.txt" "${root[@]}" apt-get update
  stage "apt-get install"
  logged "build/log/apt-install.txt" "${root[@]}" \
    env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "$@"
}

# debian_mirror: prints the address of the mirror from which this machine's apt has
# its release of Debian; nothing where there is none.
debian_mirror() {
  local suite
  # shellcheck source=/dev/null
  suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 2>/dev/null |
    awk -v suite="$suite" '$2 == suite && !seen++ {print $1}'
}
