# Functions that make a bare Debian in a directory and run commands in it. Sourced by
# dev/check_debian13 and tests/packaging/deb_test.sh, after stages.sh and packages.sh.
# shellcheck shell=bash

# why_no_debian: prints why this machine cannot make a Debian; nothing if it can.
why_no_debian() {
  local program
  if [[ $(id -u) != 0 ]]; then
    printf 'only root can make one; you are %s' "$(id -un)"
    return
  fi
  for program in apt-config git mmdebstrap unshare; do
    if ! command -v "$program" >/dev/null; then
      printf '%s is not installed; run tools/setup --debian13' "$program"
      return
    fi
  done
  unshare --mount --propagation private --pid --fork mount -t proc proc /proc 2>/dev/null ||
    printf 'this machine does not allow mounts in namespaces (unshare --mount --pid)'
}

# apt_fetch_settings: prints the fetch settings of this machine's apt, one per line.
apt_fetch_settings() {
  apt-config dump |
    grep -iE '^Acquire::((https?|ftp)::|Check-|AllowInsecure|Retries)[^ ]* "[^"]+";$' || true
}

# make_debian SUITE ROOT LOG PACKAGES: makes a Debian in ROOT, which is deleted first.
# PACKAGES are names or .deb files, separated by commas. The mirror and the proxy are
# those of this machine's apt. If it fails, the script ends, with status 77 if something
# cannot be fetched.
make_debian() {
  local suite=$1 root=$2 log=$3 packages=$4 setting file
  local -a settings options=()
  mapfile -t settings < <(apt_fetch_settings)
  for setting in "${settings[@]}"; do options+=("--aptopt=$setting"); done
  rm -rf --one-file-system "$root"
  logged_fetch "$log" mmdebstrap --mode=root --variant=apt --include="$packages" \
    --hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount \
    --aptopt='Acquire::http::Timeout "30"' --aptopt='Acquire::Retries "3"' \
    --dpkgopt=force-unsafe-io "${options[@]}" \
    "$suite" "$root" "deb $(debian_mirror) $suite main"
  # Copy the certificates and keys that the settings name.
  for setting in "${settings[@]}"; do
    file=${setting#*\"} file=${file%\";}
    if [[ $file == /* && -f $file ]]; then install -D -m 644 "$file" "$root$file"; fi
  done
}

# enter_debian ROOT BIND COMMAND ARGUMENT...: replaces this process by COMMAND in the
# Debian, with this machine's directory BIND ("from:to") mounted there. COMMAND has its own
# mount and process namespaces, so its mounts and child processes always end with it. The
# Debian becomes the root of the mount namespace (pivot_root), because a process in a
# chroot cannot make further namespaces.
enter_debian() {
  local root=$1 bind=$2 variable file
  local -a environment=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
    TERM="${TERM:-dumb}")
  shift 2
  for variable in {http,https,no}_proxy {HTTP,HTTPS,NO}_PROXY; do
    if [[ -n ${!variable:-} ]]; then environment+=("$variable=${!variable}"); fi
  done
  mkdir -p "$root${bind#*:}"
  for file in /etc/resolv.conf /etc/hosts; do
    if [[ -f $file ]]; then cp --dereference "$file" "$root$file"; fi
  done
  # shellcheck disable=SC2016
  exec unshare --mount --propagation private --pid --fork --kill-child bash -euc '
    root=$1 bind=$2
    shift 2
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    mount --bind "${bind%%:*}" "$root${bind#*:}"
    cd "$root"
    pivot_root . .
    umount --lazy .
    cd /
    exec env -i "$@"' \
    bash "$root" "$bind" "${environment[@]}" "$@"
}
