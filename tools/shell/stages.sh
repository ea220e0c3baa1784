# Sourced by tools/setup, tools/quickstart, tools/check and others: stages that say what
# they do and how long they took, and builds whose output stays bounded.
# shellcheck shell=bash

# Seconds since this shell started (bash counts them in SECONDS), as 3m07s.
elapsed() {
  printf '%dm%02ds' $((SECONDS / 60)) $((SECONDS % 60))
}

# stage TEXT...: one line that says what begins now.
stage() {
  printf '==> [%s] %s\n' "$(elapsed)" "$*"
}

# die TEXT...: ends the script with a message on stderr.
die() {
  printf '%s: error: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# interrupted: ends the script as SIGINT does, 130 for a shell, and what it has started.
interrupted() {
  trap - INT
  printf '%s: interrupted: what is built stays, and the same command goes on from there\n' \
    "${0##*/}" >&2
  local -a pids=()
  mapfile -t pids < <(jobs -p)
  if ((${#pids[@]} > 0)); then kill "${pids[@]}" 2>/dev/null || true; fi
  kill -s INT $$
}
trap interrupted INT

# logged LOG COMMAND...: runs COMMAND. On a terminal its output is shown as it
# comes; elsewhere it goes to LOG, with its last line repeated every 20 s. When
# COMMAND fails, the script ends; the end of LOG is printed.
logged() {
  local log=$1 status=0
  shift
  mkdir -p "$(dirname "$log")"
  if [[ -t 1 ]]; then
    "$@" || status=$?
    ((status == 0)) || die "'$*' failed with status $status"
    return 0
  fi
  "$@" >"$log" 2>&1 &
  local pid=$! pause=0.05 told=$SECONDS at_exit=''
  # A subshell has none, though bash lists that of the shell.
  if ((BASH_SUBSHELL == 0)); then at_exit=$(trap -p EXIT); fi
  trap 'kill '"$pid"' 2>/dev/null || true' EXIT
  while kill -0 "$pid" 2>/dev/null; do
    # What ends at once is not waited for; what takes long is not asked often.
    sleep "$pause"
    if [[ $pause == 0.05 ]]; then pause=0.2; else pause=1; fi
    if ((SECONDS - told >= 20)); then
      told=$SECONDS
      printf '    [%s] %s\n' "$(elapsed)" "$(tail -n 1 "$log" | cut -c 1-150)"
    fi
  done
  wait "$pid" || status=$?
  eval "${at_exit:-trap - EXIT}"
  if ((status != 0)); then
    grep -nE -A 12 'error:|CMake Error|FAILED:' "$log" | head -n 120 >&2 || true
    printf -- '--- the end of %s\n' "$log" >&2
    tail -n 40 "$log" >&2
    die "'$*' failed with status $status; the whole output is in $log"
  fi
}

# configure_and_build PRESET [TARGET ...]: into build/PRESET, all by default, with the
# LibTorch of TORCH_OPTIONS (choose_torch), if that is set.
configure_and_build() {
  local preset=$1
  shift
  local -a targets=()
  if (($# > 0)); then
    targets=(--target "$@")
  fi
  stage "Configuring build/$preset"
  logged "build/log/$preset-configure.txt" cmake --preset "$preset" \
    ${TORCH_OPTIONS[@]+"${TORCH_OPTIONS[@]}"}
  stage "Building build/$preset with $(parallel_jobs) jobs"
  logged "build/log/$preset-build.txt" \
    cmake --build --preset "$preset" --parallel "$(parallel_jobs)" "${targets[@]}"
}

# alternatives WORD...: the regular expression of any of them.
alternatives() {
  local IFS='|'
  printf '%s' "$*"
}

# How many compilers fit: one a core, and 1.5 GiB of memory for each (a source
# file that includes LibTorch needs about that).
parallel_jobs() {
  local cores memory_kib jobs
  cores=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  jobs=$((memory_kib / (1536 * 1024)))
  if ((jobs > cores)); then jobs=$cores; fi
  if ((jobs < 1)); then jobs=1; fi
  printf '%d' "$jobs"
}

# The number of cores that this process may use, hyperthreads not counted: what
# Open MPI takes for the number of slots.
usable_cores() {
  local cores=0 cpus
  cpus=$(nproc)
  if command -v lscpu >/dev/null; then
    # Of the CPUs that this process may use ("0-3,8"), count the cores.
    cores=$(lscpu -p=CPU,CORE,SOCKET | awk -F, -v allowed="$(
      awk '/^Cpus_allowed_list:/ {print $2}' /proc/self/status)" '
      BEGIN {
        count = split(allowed, ranges, ",")
        for (i = 1; i <= count; ++i) {
          ends = split(ranges[i], range, "-")
          for (cpu = range[1]; cpu <= range[ends]; ++cpu) usable[cpu + 0] = 1
        }
      }
      /^[0-9]/ && ($1 + 0 in usable) && !(($2 "," $3) in seen) {
        seen[$2 "," $3] = 1
        ++cores
      }
      END {print cores + 0}')
  fi
  if ((cores < 1 || cores > cpus)); then cores=$cpus; fi
  printf '%d' "$cores"
}

# use_fast_openblas: where OpenBLAS does not know the processor and would choose
# kernels of a much older one, tells it which to take.
use_fast_openblas() {
  local setting
  setting=$(tools/openblas_core)
  if [[ -n $setting ]]; then
    stage "OpenBLAS does not know this processor: setting $setting"
    export "${setting?}"
  fi
}

# mpirun_arguments RANKS: sets the array MPIRUN to an mpirun command line for
# RANKS ranks on this machine. Open MPI refuses to run as root, and with more
# ranks than cores, unless told otherwise.
mpirun_arguments() {
  local ranks=$1 cores
  local -a variables=() flags=()
  cores=$(usable_cores)
  if [[ $(id -u) == 0 ]]; then
    variables=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
  fi
  if ((ranks > cores)); then
    # Variables of Open MPI 4 and 5: other launchers do not understand its flags.
    variables+=(OMPI_MCA_rmaps_base_oversubscribe=1
      PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)
    flags=(--bind-to none)
  elif ((ranks * 2 <= cores)); then
    flags=(--bind-to none) # several threads a rank; one core would hold all
  fi
  MPIRUN=()
  if ((${#variables[@]} > 0)); then MPIRUN=(env "${variables[@]}"); fi
  MPIRUN+=(mpirun -np "$ranks" "${flags[@]}")
}
