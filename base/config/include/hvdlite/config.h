// Config: the settings of a world.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hvdlite {

// Precedence of a value: default < environment variable < assignment by the
// program:
//
//   hvdlite::Config config = hvdlite::Config::from_env();
//   config.timeline = "trace.json";
//   hvdlite::init(config);
//
// All ranks need the same values, except for options that may differ by rank.
// init() compares them.
struct Config {
  // HVDLITE_FUSION_THRESHOLD_BYTES. A bucket takes no more tensors once it has
  // this many bytes.
  int64_t fusion_threshold_bytes = int64_t{64} << 20;
  // HVDLITE_MIN_BATCH_BYTES. Minimum size of a bucket, unless a thread waits
  // for one of its tensors.
  int64_t min_batch_bytes = int64_t{4} << 20;
  // HVDLITE_CHUNK_BYTES. Bytes that are packed, reduced and unpacked at a
  // time between ranks that share no memory.
  int64_t chunk_bytes = int64_t{4} << 20;
  // HVDLITE_TREE_ARITY. Maximum number of ranks directly below a rank in the
  // negotiation tree. From 1 to 31. A rank has at most this many on its own
  // node, and as many on other nodes.
  int64_t tree_arity = 8;
  // HVDLITE_TIMELINE. File for a Chrome trace; empty: none.
  std::string timeline;
  // HVDLITE_TIMELINE_STEPS. Training steps to record, such as `100-110`, `100-`
  // or `100`, counted from 1 by the calls of DistributedOptimizer::step();
  // empty: the whole run.
  std::string timeline_steps;
  // HVDLITE_TIMELINE_CHUNKS. Record every chunk in the timeline.
  bool timeline_chunks = false;
  // HVDLITE_LOG_LEVEL. Lowest level that is logged. It is one of
  // `debug`, `info`, `warning`, `error` and `off`. May differ by rank.
  std::string log_level = "warning";
  // HVDLITE_STALL_WARNING_SECONDS. Warn when an operation has waited this long
  // for a rank; 0: never.
  double stall_warning_seconds = 60;
  // HVDLITE_STALL_FAILURE_SECONDS. Abort the world when an operation has waited
  // this long for a rank; 0: never. Not while that rank's process computes or
  // does I/O: it is slow, not stuck.
  double stall_failure_seconds = 660;
  // HVDLITE_WATCHDOG_SECONDS. Abort the world when a reduction has made no
  // progress for this long; 0: never. Every chunk that arrives is progress.
  double watchdog_seconds = 120;
  // HVDLITE_START_TIMEOUT_SECONDS. Longest duration of init(); 0: no limit.
  // Then the process ends with exit code 75. After half of that time a warning
  // names what init() waits for.
  double start_timeout_seconds = 300;
  // HVDLITE_SHUTDOWN_TIMEOUT_SECONDS. Longest time that shutdown() waits for
  // the other ranks; 0: no limit.
  double shutdown_timeout_seconds = 0;
  // HVDLITE_MAX_POLL_PAUSE_US. Longest pause between two polls of a control
  // channel that has to be polled.
  int64_t max_poll_pause_us = 5000;
  // HVDLITE_JOIN_AVERAGE_OVER_WORLD. After a join, averages still divide by the
  // size of the process set, as in Horovod. Otherwise they divide by the number
  // of ranks that take part. See join().
  bool join_average_over_world = false;
  // HVDLITE_BACKEND. `auto` and `mpi`: MPI, also for one process; `single`:
  // this process alone, without MPI.
  std::string backend = "auto";
  // HVDLITE_DETERMINISTIC. Sums have the same bits in every run.
  bool deterministic = false;
  // HVDLITE_SHARED_MEMORY. Ranks of a node reduce through shared memory.
  bool shared_memory = true;
  // HVDLITE_CONTROL_CHANNEL. What carries control messages between nodes;
  // `auto`: UCX, or MPI if UCX is not available. `ucx`: UCX or an error; `mpi`:
  // MPI, which has to be polled. Inside a node it is always shared memory.
  std::string control_channel = "auto";
  // HVDLITE_COORDINATOR_CORE. The CPU that the background thread is bound to: a
  // number, `none`, or `auto`: a core that the process may use and its OpenMP
  // threads do not need. May differ by rank.
  std::string coordinator_core = "auto";
  // HVDLITE_HEARTBEAT_SECONDS. Abort the world when a rank has been silent for
  // this long; 0: never. Checked while operations are pending.
  double heartbeat_seconds = 30;
  // HVDLITE_ALLREDUCE_TABLE. File with the measured choice of allreduce
  // algorithms; empty: the built-in one.
  std::string allreduce_table;
  // HVDLITE_VIRTUAL_NODES. Sizes of the nodes that hosts are split into, for
  // tests; empty: every host is a node. For example `2,1` for three ranks. The
  // sizes add up to the size of the world; the last size is repeated for the
  // remaining ranks. local_rank(), cross_rank() and the like follow it.
  std::string virtual_nodes;
  // HVDLITE_MALLOC. Whether init() makes malloc keep freed memory for the next
  // step: `tune`, yes; `keep`, malloc stays as it is. It also stays as it is if
  // it is not glibc's, or if a variable such as MALLOC_TRIM_THRESHOLD_ or
  // GLIBC_TUNABLES configures when memory returns to the system. May differ by
  // rank.
  std::string malloc = "tune";

  // HVDLITE_CHECK. When a DistributedOptimizer compares the parameters of its
  // ranks: `off`, `start`, `periodic` or `every`. `start`: before step 1, after
  // step 1 and after step 10; `periodic`: then also after every 100 steps, a
  // sixteenth of the bytes each; `every`: before the update of each step. A
  // difference is an error on all ranks. With `start` and `periodic` it is only
  // a warning if the parameters have never been equal.
  std::string check = "periodic";
  // HVDLITE_NONFINITE_GRADIENTS. What to do about a gradient with NaN or
  // infinity: `off`, `warn`, `error` or `skip`. The message names the rank.
  // `error`: an error on all ranks in that step; `skip`: all ranks skip the
  // step if a reduced gradient is not finite.
  std::string nonfinite_gradients = "warn";

  // Reads the environment. Throws c10::ValueError, which names the variable,
  // the value and the accepted values. An unknown HVDLITE_* variable is a
  // warning (see `warnings`), or an error with HVDLITE_STRICT=1.
  static Config from_env();

  // One line per value: name, value, and where it comes from (default,
  // environment, program).
  std::string describe() const;

  // Warnings of from_env(), which init() logs on rank 0.
  std::vector<std::string> warnings;

  // The values read from the environment: option name -> canonical text.
  // describe() uses them to show where a value comes from.
  std::map<std::string, std::string> values_from_environment;
};

}  // namespace hvdlite
