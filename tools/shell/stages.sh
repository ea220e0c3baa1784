# Functions that print the stages of a script with the elapsed time, and that build with
# bounded output. Sourced by tools/setup, tools/quickstart, tools/check and others.
# shellcheck shell=bash

# elapsed: prints the time since this shell started, as 3m07s.
elapsed() {
  printf '%dm%02ds' $((SECONDS / 60)) $((SECONDS % 60))
}

# stage TEXT...: prints which stage begins now.
stage() {
  printf '==> [%s] %s\n' "$(elapsed)" "$*"
}

# die TEXT...: ends the script with a message on stderr.
die() {
  printf '%s: error: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# interrupted: ends the script and its child processes as SIGINT does (status 130).
interrupted() {
  trap - INT
  printf '%s: interrupted. Finished parts of the build are kept; run the command again to continue\n' \
    "${0##*/}" >&2
  local -a pids=()
  mapfile -t pids < <(jobs -p)
  if ((${#pids[@]} > 0)); then kill "${pids[@]}" 2>/dev/null || true; fi
  kill -s INT $$
}
trap interrupted INT

# logged LOG COMMAND...: runs COMMAND. On a terminal it shows the output directly.
# Otherwise the output goes to LOG, and its last line is printed every 20 s. If COMMAND
# fails, the end of LOG is printed and the script ends.
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
  # A subshell has no EXIT trap of its own, although bash lists the parent shell's.
  if ((BASH_SUBSHELL == 0)); then at_exit=$(trap -p EXIT); fi
  trap 'kill '"$pid"' 2>/dev/null || true' EXIT
  while kill -0 "$pid" 2>/dev/null; do
    # Poll soon for a short command, and rarely for a long one.
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

# configure_and_build PRESET [TARGET ...]: builds the targets (default: all) in
# build/PRESET, with the LibTorch of TORCH_OPTIONS (choose_torch) if that is set.
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

# alternatives WORD...: prints a regular expression that matches any of the words.
alternatives() {
  local IFS='|'
  printf '%s' "$*"
}

# parallel_jobs: prints how many compilers can run at once: one per core, each with
# 1.5 GiB of memory (about the need of a source file that includes LibTorch).
parallel_jobs() {
  local cores memory_kib jobs
  cores=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  jobs=$((memory_kib / (1536 * 1024)))
  if ((jobs > cores)); then jobs=$cores; fi
  if ((jobs < 1)); then jobs=1; fi
  printf '%d' "$jobs"
}

# usable_cores: prints the number of cores that this process may use, without
# hyperthreads. Open MPI has as many slots.
usable_cores() {
  local cores=0 cpus
  cpus=$(nproc)
  if command -v lscpu >/dev/null; then
    # Count the cores of the CPUs that this process may use ("0-3,8").
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

# use_fast_openblas: sets OPENBLAS_CORETYPE if OpenBLAS does not know the processor and
# would choose the kernels of a much older one.
use_fast_openblas() {
  local setting
  setting=$(tools/openblas_core)
  if [[ -n $setting ]]; then
    stage "OpenBLAS does not know this processor: setting $setting"
    export "${setting?}"
  fi
}

# mpirun_arguments RANKS: sets the array MPIRUN to an mpirun command line for RANKS ranks
# on this machine. Without special variables, Open MPI refuses to run as root and to
# start more ranks than cores.
mpirun_arguments() {
  local ranks=$1 cores
  local -a variables=() flags=()
  cores=$(usable_cores)
  if [[ $(id -u) == 0 ]]; then
    variables=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
  fi
  if ((ranks > cores)); then
    # These are variables, because other launchers do not understand Open MPI's flags.
    variables+=(OMPI_MCA_rmaps_base_oversubscribe=1
      PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)
    flags=(--bind-to none)
  elif ((ranks * 2 <= cores)); then
    flags=(--bind-to none) # a rank has several threads, which must not share one core
  fi
  MPIRUN=()
  if ((${#variables[@]} > 0)); then MPIRUN=(env "${variables[@]}"); fi
  MPIRUN+=(mpirun -np "$ranks" "${flags[@]}")
}
