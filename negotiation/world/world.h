// World: everything that exists between init() and shutdown().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/logging.h"
#include "base/mutex.h"
#include "collective/mpi/mpi_world.h"
#include "collective/topology.h"
#include "hvdlite/config.h"
#include "negotiation/engine/coordinator.h"
#include "negotiation/explain/explainer.h"
#include "negotiation/protocol/request.h"
#include "negotiation/world/backend.h"
#include "negotiation/world/start_agreement.h"
#include "timeline/diagnose/step_reporter.h"
#include "timeline/record/step_meter.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::internal {

struct CoordinatorCpu;

// This process's part in the world: backend, coordinator and timeline. Held by
// shared_ptr, since operations may outlive shutdown(). Thread-safe, except
// Start and Close: one thread calls these.
class World {
 public:
  // Starts the world of the processes that `config` and, with MPI, `ranks`
  // select. Collective; on failure nothing keeps running. `versions`: the text
  // of build_info(), for the log.
  static absl::StatusOr<std::shared_ptr<World>> Start(
      const Config& config, const collective::MpiRanks& ranks = {},
      const std::string& versions = "");
  // Starts a world on `backend`. `config` is valid, and the ranks agree about
  // it.
  static absl::StatusOr<std::shared_ptr<World>> Start(
      const Config& config, std::unique_ptr<Backend> backend,
      const std::string& versions = "");

  // Collective. Leaves for `reason`, waits up to `timeout` for the other ranks,
  // ends the timeline and closes everything. If the world broke or other ranks
  // did not leave in time, the backend is never freed, since peers may still
  // write. The error is then returned: Unavailable or DeadlineExceeded.
  absl::Status Close(const std::string& reason, absl::Duration timeout);

  const collective::Topology& topology() const { return topology_; }
  const base::Logger& logger() const { return logger_; }
  const base::Clock& clock() const { return clock_; }
  const Config& config() const { return config_; }
  const std::string& versions() const { return versions_; }
  // Whether MPI cannot be started again after Close().
  bool only_once() const { return only_once_; }
  // Whether the remaining ranks can make another world once this one is broken.
  bool can_be_replaced() const { return can_be_replaced_; }

  // For the operations of the public API. Close() closes it.
  negotiation::Coordinator& coordinator() { return *coordinator_; }

  // True if another thread may still use parts that Close() could not end. Then
  // the World must never be destroyed, and the process should end by _exit.
  bool abandoned() const { return abandoned_; }

  // 0, 1, 2, ...: the number of earlier calls for this kind and process set
  // since all ranks last joined.
  int64_t NextNumber(absl::string_view kind,
                     negotiation::ProcessSetId process_set);
  // A name that is not used again: "<kind>.noname.<N>", N as for NextNumber;
  // after joins "<kind>.noname.<joins>.<N>".
  std::string NextName(absl::string_view kind,
                       negotiation::ProcessSetId process_set);
  // All ranks have joined: numbers start again from 0, since the ranks may have
  // made different numbers of calls.
  void CountJoin();
  // A process set was removed: there are no more calls for it.
  void ForgetNumbers(negotiation::ProcessSetId process_set);
  // How often all ranks have joined.
  int64_t joins() const { return joins_.load(); }

  // An object of the layer above that belongs to this world. `make` creates it
  // on first use; it is destroyed with the world.
  void* Companion(absl::FunctionRef<std::shared_ptr<void>()> make);

  // Starts recording into `path`. Not collective. FailedPrecondition if
  // recording is on.
  absl::Status OpenRecorder(const std::string& path);
  // Stops recording; the per-rank trace file is then complete. Does nothing if
  // recording is off. Returns the path of the merged trace, or an empty string.
  absl::StatusOr<std::string> CloseRecorder();
  // Merges the per-rank trace files on rank 0, once all ranks have closed
  // theirs. Logs a warning if it fails.
  void MergeTrace(const std::string& path);
  bool is_recording() const;
  // The recipient of events: the timeline, and the reports of steps to
  // hvdliterun. Null: neither is on.
  std::shared_ptr<timeline::TraceRecorder> recorder() const;
  // The training steps that are recorded.
  timeline::StepMeter& step_meter() { return step_meter_; }

  World(const Config& config, const base::Logger& logger,
        std::unique_ptr<Backend> backend, const std::string& versions);

 private:
  absl::Status StartCoordinator();
  // Collective.
  absl::Status LogStart(const CoordinatorCpu& cpu);
  void Abandon();
  void OpenReporter();
  void CloseReporter();
  std::vector<timeline::TraceArg> RankFacts() const;
  std::function<std::vector<timeline::TraceEvent>()> MakeSampler() const;
  [[noreturn]] void EndStuckProcess(const absl::Status& status);

  const Config config_;
  const base::SteadyClock clock_;
  const base::Logger logger_;
  const std::string versions_;
  const int64_t start_ns_;   // when the world was made
  const pid_t main_thread_;  // that made the world
  const collective::Topology topology_;
  const bool only_once_;
  const bool can_be_replaced_;
  std::unique_ptr<Backend> backend_;
  ClockOffset clock_offset_;
  bool abandoned_ = false;
  timeline::StepMeter step_meter_;

  mutable base::Mutex mutex_;
  std::atomic<int64_t> joins_{0};
  struct Numbers {  // for a kind and process set
    std::string kind;
    negotiation::ProcessSetId process_set;
    int64_t next;
  };
  std::vector<Numbers> numbers_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<void> companion_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<timeline::TraceRecorder> trace_recorder_
      ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<timeline::StepReporter> reporter_ ABSL_GUARDED_BY(mutex_);
  std::string trace_path_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<Explainer> explainer_;  // for hangs; outlives the coordinator
  Processes processes_;
  std::unique_ptr<negotiation::Coordinator> coordinator_;
  std::unique_ptr<Usr2Handler> usr2_;
};

}  // namespace hvdlite::internal
