#!/usr/bin/env bash
# Checks that the scripts of tools/, dev/, bench/ and studies/ parse, print --help, and refuse an
# unknown argument with a message that names it. Runs shellcheck if it is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts=(tools/setup tools/quickstart tools/check dev/check_a64fx dev/check_debian13
  dev/check_pip_torch tools/install .ci/run tools/shell/*.sh tests/testing/mpirun tests/packaging/*.sh tests/house/*.sh)
failures=0
fail() {
  printf 'FAILED: %s\n' "$*"
  failures=$((failures + 1))
}
# refuses COMMAND...: the command must fail; sets `message` to its output.
refuses() {
  if message=$("$@" </dev/null 2>&1); then fail "$* succeeded: $message"; fi
}

for script in "${scripts[@]}"; do
  bash -n "$script" || fail "$script does not parse"
done
for script in tools/setup tools/quickstart tools/check dev/check_a64fx dev/check_debian13 \
  dev/check_pip_torch tools/install "bench/compare allreduce" "bench/compare peers" \
  "bench/compare trainers" studies/bench_report studies/bench_suite studies/study; do
  read -ra command <<<"$script"
  [[ -x ${command[0]} ]] || fail "$script is not executable"
  [[ $("${command[@]}" --help </dev/null) == "usage: "* ]] || fail "$script --help prints no usage"
  refuses "${command[@]}" --no-such-flag
  [[ $message == *--no-such-flag* ]] || fail "$script does not name the bad argument: $message"
done
if command -v shellcheck >/dev/null; then
  shellcheck -x "${scripts[@]}" || fail "shellcheck"
fi

fakes=$(mktemp -d)
trap 'rm -rf "$fakes"' EXIT
# fake NAME SCRIPT: makes a command that hides the real one from `faked_setup`.
fake() {
  printf '#!/bin/sh\n%s\n' "$2" >"$fakes/$1"
  chmod +x "$fakes/$1"
}
faked_setup() {
  PATH=$fakes:$PATH tools/setup "$@" 2>&1
}

# If a package is missing and there is no terminal, the message says what to run.
# shellcheck disable=SC2016
fake dpkg-query 'test "$3" = libtorch-dev || echo installed'
fake id 'echo 1000'
fake sudo 'echo "sudo was called: $*" >&2; exit 1'
refuses faked_setup
[[ $message == *"tools/setup --yes"* ]] || fail "setup does not say what to run: $message"
[[ $message == *libtorch-dev* ]] || fail "setup does not name the package: $message"
[[ $message != *openmpi* ]] || fail "setup names a package that is installed: $message"
[[ $message != *"sudo was called"* ]] || fail "setup calls sudo without asking: $message"

# With --yes it does not ask, and it shows the output of a command that fails.
refuses faked_setup --yes
[[ $message == *"sudo was called: apt-get update"* ]] || fail "setup --yes does not call sudo: $message"

# Without root, check_debian13 says so and exits with the status that makes ctest skip.
status=0
message=$(PATH=$fakes:$PATH dev/check_debian13 2>&1) || status=$?
((status == 77)) || fail "check_debian13 ends with $status without root: $message"
[[ $message == *"only root"* ]] || fail "check_debian13 does not ask for root: $message"

# The status is 77 if a mirror does not deliver a file; all other errors are failures.
# status_where_apt_says TEXT: exits with the status of logged_fetch if apt prints TEXT.
status_where_apt_says() (
  # shellcheck source=tools/shell/packages.sh
  source tools/shell/packages.sh
  logged() {
    printf '%s\n' "${@:2}" >"$1"
    false
  }
  logged_fetch "$fakes/apt.txt" "$1" || exit $?
)
for apt_says in "E: Failed to fetch http://a/InRelease  Could not resolve 'a'" \
  "E: Failed to fetch http://a/b.deb  404  Not Found [IP: 127.0.0.1 80]" \
  "E: The repository 'http://a trixie Release' does not have a Release file."; do
  status=0
  status_where_apt_says "$apt_says" || status=$?
  ((status == 77)) || fail "the status is $status where apt says: $apt_says"
done
for apt_says in "E: Unable to locate package no-such-package" \
  "E: The repository 'http://a trixie InRelease' is not signed." \
  "E: Failed to fetch http://a/b.deb  write (28: No space left on device)" \
  "W: Failed to fetch http://a/InRelease
E: Sub-process /usr/bin/dpkg returned an error code (1)"; do
  status=0
  status_where_apt_says "$apt_says" || status=$?
  ((status == 1)) || fail "the status is $status where apt says: $apt_says"
done

# check_debian13_where APT_LOG SETUP_STATUS: runs check_debian13 as root. mmdebstrap prints
# APT_LOG and fails; if APT_LOG is empty, it makes a Debian in which tools/setup exits with
# SETUP_STATUS. Sets `status` and `message`.
check_debian13_where() {
  fake id 'echo 0'
  fake mmdebstrap "printf '%s\n' \"$1\" >&2; test -z \"$1\" && mkdir -p '$fakes/debian/root/etc'"
  fake unshare "case \$* in *tools/setup*) exit $2 ;; *tools/check*) echo tested ;; esac"
  status=0
  rm -rf "$fakes/debian"
  message=$(PATH=$fakes:$PATH dev/check_debian13 --reduced --directory="$fakes/debian" 2>&1) ||
    status=$?
}
check_debian13_where "E: Failed to fetch http://a/InRelease  Could not resolve 'a'" 0
((status == 77)) || fail "check_debian13 ends with $status without a mirror: $message"
[[ ${message##*$'\n'} == "No Debian 13 here: "* ]] ||
  fail "check_debian13 does not say why there is none: $message"
check_debian13_where "E: Unable to locate package no-such-package" 0
((status == 1)) || fail "check_debian13 ends with $status without a package: $message"
[[ $message == *no-such-package* ]] || fail "check_debian13 does not show what failed: $message"
for setup_status in 0 1 77; do
  git rev-parse --git-dir >/dev/null 2>&1 || break # check_debian13 copies the files that git lists
  check_debian13_where "" "$setup_status"
  ((status == setup_status)) || fail "check_debian13 ends with $status, its setup with $setup_status"
  [[ $message == *tested* || $setup_status != 0 ]] || fail "check_debian13 tests nothing: $message"
  [[ $message == *"No Debian 13 here: "* || $setup_status != 77 ]] ||
    fail "check_debian13 hides a missing mirror: $message"
done

# install passes the LibTorch of --torch to CMake, not that of an earlier call.
fake cmake 'echo "cmake $*"'
mkdir -p "$fakes/libtorch/share/cmake/Torch" "$fakes/nothing" \
  "$fakes/venv/lib/python3.11/site-packages/torch/share/cmake/Torch"
touch "$fakes/libtorch/share/cmake/Torch/TorchConfig.cmake" \
  "$fakes/venv/lib/python3.11/site-packages/torch/share/cmake/Torch/TorchConfig.cmake"
package=venv/lib/python3.11/site-packages/torch
for prefix in libtorch "$package"; do
  PATH=$fakes:$PATH tools/install "$fakes/prefix" --build "$fakes/build" \
    --torch "$fakes/${prefix%%/*}" >/dev/null || fail "install refuses --torch $prefix"
  message=$(cat build/log/install-configure.txt)
  [[ $message == *"-UTorch_DIR "*"-DCMAKE_PREFIX_PATH=$fakes/$prefix" ]] ||
    fail "install does not configure with $prefix: $message"
done
rm "$fakes/cmake"
for script in "tools/install $fakes/prefix" tools/quickstart "tools/check --no-setup"; do
  # shellcheck disable=SC2086
  refuses $script --torch "$fakes/nothing"
  [[ $message == *"--torch $fakes/nothing: no LibTorch is there"* ]] ||
    fail "$script does not explain what is wrong with --torch: $message"
done

# Every form of --torch gives the prefix of its LibTorch. The PyTorch of a Python counts if it
# has CMake's files and is for CPUs.
printf "__version__ = '2.13.0'\ncuda = None\n" >"$fakes/$package/version.py"
touch "$fakes/$package/__init__.py"
printf '#!/bin/sh\nPYTHONPATH=%s exec "%s" "$@"\n' "$fakes/${package%/torch}" \
  "$(command -v python3)" >"$fakes/venv/python3"
chmod +x "$fakes/venv/python3"
# torch_found COMMAND ARGUMENT...: prints the output of a function of tools/shell/torch.sh.
torch_found() (
  # shellcheck source=tools/shell/torch.sh
  source tools/shell/torch.sh
  "$@" 2>&1
)
# shellcheck source=tools/shell/stages.sh
source tools/shell/stages.sh
for path in venv venv/python3 "$package" "$package/share/cmake" "$package/share/cmake/Torch"; do
  message=$(torch_found torch_prefix "$fakes/$path") || true
  [[ $message == "$fakes/$package" ]] || fail "--torch $path finds $message"
done
# `logged` notices soon that a short command has ended, not after a second.
(
  sleep() {
    echo "$1" >>"$fakes/pauses.txt"
    command sleep "$1"
  }
  # shellcheck disable=SC2016
  logged "$fakes/log.txt" bash -c 'until [[ -s $1 ]]; do :; done' bash "$fakes/pauses.txt" >/dev/null
)
first=$(head -n 1 "$fakes/pauses.txt")
[[ $first == 0.05 ]] || fail "logged waits $first s for a short command"

# choice PATH [CACHE]: prints the choice of choose_torch if python3 has PyTorch and the last
# build's cache contains the line CACHE.
choice() (
  # shellcheck source=tools/shell/torch.sh
  source tools/shell/torch.sh
  rm -f "$fakes/CMakeCache.txt"
  if (($# > 1)); then printf '%s\n' "$2" >"$fakes/CMakeCache.txt"; fi
  PATH=$fakes/venv:$PATH choose_torch "$1" "$fakes" >"$fakes/told"
  printf '%s %s' "$OWN_TORCH" "${TORCH_OPTIONS[*]}"
)
own="true -UTorch_DIR -DCMAKE_PREFIX_PATH=$fakes/$package"
[[ $(choice "") == "$own" ]] || fail "the first build does not use python3's PyTorch: $(choice "")"
grep -q "LibTorch: $fakes/$package " "$fakes/told" || fail "choose_torch does not print the LibTorch"
debians=$fakes/usr/lib/cmake/Torch
mkdir -p "$debians"
[[ $(choice "" "Torch_DIR:PATH=$debians") == "false " ]] ||
  fail "Debian's LibTorch of the last build is not kept"
[[ $(choice "" "Torch_DIR:PATH=$fakes/libtorch/share/cmake/Torch") == "true " ]] ||
  fail "the non-Debian LibTorch of the last build is not kept"
[[ $(choice "" "Torch_DIR:PATH=$fakes/removed/share/cmake/Torch") == "$own" ]] ||
  fail "a LibTorch that was removed since the last build is kept"
[[ $(choice "$fakes/venv" "Torch_DIR:PATH=$debians") == "$own" ]] ||
  fail "--torch does not have priority"
[[ $(choice /usr) == "false -UTorch_DIR -DCMAKE_PREFIX_PATH=" ]] || fail "/usr is not Debian's"
[[ $(PATH=$fakes/venv:$PATH torch_found path_argument / python3) == "$fakes/venv/python3" ]] ||
  fail "--torch python3 is not the command"
printf "__version__ = '1.12.1'\ncuda = None\n" >"$fakes/$package/version.py"
[[ $(choice "") == "false "* ]] || fail "a PyTorch before 1.13 is used without --torch"
printf "__version__ = '2.13.0'\ncuda = '12.6'\n" >"$fakes/$package/version.py"
[[ $(choice "") == "false "* ]] || fail "a PyTorch for GPUs is used without --torch"
refuses torch_found torch_prefix "$fakes/venv/python3"
[[ $message == *"has no PyTorch to build with"* ]] || fail "--torch PYTHON does not explain the error: $message"

# check_pip_torch_where PIP_STATUS: runs check_pip_torch with a pip that exits with that status
# (the pip of another Python has no index) and with a cmake that fails. Sets `status` and
# `message`.
check_pip_torch_where() {
  # shellcheck disable=SC2016
  fake python3 'case $2 in venv) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;; *) echo "$*"; exit '"$1"' ;; esac'
  fake cmake 'echo "cmake $*"; exit 1'
  status=0
  message=$(PATH=$fakes:$PATH PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_FIND_LINKS="$fakes/nothing" \
    dev/check_pip_torch --reduced --no-setup --directory="$fakes/pip" 2>&1) || status=$?
  rm "$fakes/python3" "$fakes/cmake"
}
# If pip finds no torch, ctest skips the test. If the build fails, the test fails.
check_pip_torch_where 1
((status == 77)) || fail "check_pip_torch ends with $status without the package: $message"
[[ $message == *"No torch "*"pip does not find it"* ]] ||
  fail "check_pip_torch does not explain what is missing: $message"
grep -q 'download.pytorch.org' build/log/pip_torch.txt ||
  fail "check_pip_torch does not ask for the package where PyTorch publishes it"
check_pip_torch_where 0
((status == 1)) || fail "check_pip_torch ends with $status if the build fails: $message"
[[ $message == *"-DCMAKE_PREFIX_PATH=$fakes/pip/venv"* ]] ||
  fail "check_pip_torch does not configure with the environment: $message"

# The reference BLAS is an error with its remedy.
fake dpkg-query 'echo installed'
mkdir -p "$fakes/x86_64-linux-gnu" "$fakes/blas"
touch "$fakes/blas/libblas.so.3.11"
ln -s ../blas/libblas.so.3.11 "$fakes/x86_64-linux-gnu/libblas.so.3"
fake ldconfig "echo '	libblas.so.3 (libc6,x86-64) => $fakes/x86_64-linux-gnu/libblas.so.3'"
refuses faked_setup
[[ $message == *"update-alternatives --set libblas.so.3-x86_64-linux-gnu"* ]] ||
  fail "setup does not say how to fix the BLAS: $message"

((failures == 0))
