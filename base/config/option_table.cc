#include "base/config/option_table.h"

#include <vector>

namespace hvdlite {

absl::Span<const Option> Options() {
  using Kind = OptionKind;
  static const auto* const options = new std::vector<Option>{
      {.name = "fusion_threshold_bytes",
       .field = &Config::fusion_threshold_bytes,
       .kind = Kind::kBytes,
       .minimum = 1,
       .help = "a bucket takes no more tensors once it has this many bytes"},
      {.name = "min_batch_bytes",
       .field = &Config::min_batch_bytes,
       .kind = Kind::kBytes,
       .help = "minimum size of a bucket, unless a thread waits for one of its "
               "tensors"},
      {.name = "chunk_bytes",
       .field = &Config::chunk_bytes,
       .kind = Kind::kBytes,
       .minimum = 64,
       .maximum = int64_t{1} << 30,
       .help = "bytes that are packed, reduced and unpacked at a time between "
               "ranks that share no memory"},
      {.name = "tree_arity",
       .field = &Config::tree_arity,
       .kind = Kind::kInteger,
       .minimum = 1,
       .maximum = kMaxTreeArity,
       .help = "maximum number of ranks directly below a rank in the "
               "negotiation tree"},
      {.name = "timeline",
       .field = &Config::timeline,
       .kind = Kind::kPath,
       .help = "file for a Chrome trace; empty: none"},
      {.name = "timeline_steps",
       .field = &Config::timeline_steps,
       .kind = Kind::kSteps,
       .help = "training steps to record, such as 100-110, 100- or 100, "
               "counted from 1 by the calls of DistributedOptimizer::step(); "
               "empty: the whole run"},
      {.name = "timeline_chunks",
       .field = &Config::timeline_chunks,
       .kind = Kind::kSwitch,
       .help = "record every chunk in the timeline"},
      {.name = "log_level",
       .field = &Config::log_level,
       .kind = Kind::kChoice,
       .choices = "debug, info, warning, error, off",
       .same_on_all_ranks = false,
       .help = "lowest level that is logged"},
      {.name = "stall_warning_seconds",
       .field = &Config::stall_warning_seconds,
       .kind = Kind::kSeconds,
       .help = "warn when an operation has waited this long for a rank; 0: "
               "never"},
      {.name = "stall_failure_seconds",
       .field = &Config::stall_failure_seconds,
       .kind = Kind::kSeconds,
       .help = "abort the world when an operation has waited this long for a "
               "rank; 0: never"},
      {.name = "watchdog_seconds",
       .field = &Config::watchdog_seconds,
       .kind = Kind::kSeconds,
       .help = "abort the world when a reduction has made no progress for this "
               "long; 0: never"},
      {.name = "start_timeout_seconds",
       .field = &Config::start_timeout_seconds,
       .kind = Kind::kSeconds,
       .help = "longest duration of init(); 0: no limit"},
      {.name = "shutdown_timeout_seconds",
       .field = &Config::shutdown_timeout_seconds,
       .kind = Kind::kSeconds,
       .help = "longest time that shutdown() waits for the other ranks; 0: no "
               "limit"},
      {.name = "max_poll_pause_us",
       .field = &Config::max_poll_pause_us,
       .kind = Kind::kInteger,
       .minimum = 1,
       .maximum = 1'000'000,
       .help = "longest pause between two polls of a control channel that has "
               "to be polled"},
      {.name = "join_average_over_world",
       .field = &Config::join_average_over_world,
       .kind = Kind::kSwitch,
       .help = "after a join, averages still divide by the size of the process "
               "set, as in Horovod"},
      {.name = "backend",
       .field = &Config::backend,
       .kind = Kind::kChoice,
       .choices = "auto, mpi, single",
       .help = "auto and mpi: MPI, also for one process; single: this process "
               "alone, without MPI"},
      {.name = "deterministic",
       .field = &Config::deterministic,
       .kind = Kind::kSwitch,
       .help = "sums have the same bits in every run"},
      {.name = "shared_memory",
       .field = &Config::shared_memory,
       .kind = Kind::kSwitch,
       .help = "ranks of a node reduce through shared memory"},
      {.name = "control_channel",
       .field = &Config::control_channel,
       .kind = Kind::kChoice,
       .choices = "auto, mpi, ucx",
       .help = "what carries control messages between nodes; auto: UCX, or MPI "
               "if UCX is not available"},
      {.name = "coordinator_core",
       .field = &Config::coordinator_core,
       .kind = Kind::kCpu,
       .same_on_all_ranks = false,
       .help = "the CPU that the background thread is bound to: a number, "
               "none, or auto: a core that the process may use and its OpenMP "
               "threads do not need"},
      {.name = "heartbeat_seconds",
       .field = &Config::heartbeat_seconds,
       .kind = Kind::kSeconds,
       .help = "abort the world when a rank has been silent for this long; 0: "
               "never"},
      {.name = "allreduce_table",
       .field = &Config::allreduce_table,
       .kind = Kind::kPath,
       .help = "file with the measured choice of allreduce algorithms; "
               "empty: the built-in one"},
      {.name = "virtual_nodes",
       .field = &Config::virtual_nodes,
       .kind = Kind::kNodes,
       .help = "sizes of the nodes that hosts are split into, for tests; "
               "empty: every host is a node"},
      {.name = "malloc",
       .field = &Config::malloc,
       .kind = Kind::kChoice,
       .choices = "keep, tune",
       .same_on_all_ranks = false,
       .help = "whether init() makes malloc keep freed memory for the next "
               "step: tune, yes; keep, malloc stays as it is"},
      {.name = "check",
       .field = &Config::check,
       .kind = Kind::kChoice,
       .choices = "off, start, periodic, every",
       .help = "when a DistributedOptimizer compares the parameters of "
               "its ranks: off, start, periodic or every"},
      {.name = "nonfinite_gradients",
       .field = &Config::nonfinite_gradients,
       .kind = Kind::kChoice,
       .choices = "off, warn, error, skip",
       .help = "what to do about a gradient with NaN or infinity: off, warn, "
               "error or skip"},
  };
  return *options;
}

}  // namespace hvdlite
