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
// shared_ptr, since operations may outlive shutdown(). Thread-safe but for
// Start and Close, which one thread calls.
class World {
 public:
  // Of the processes that `config` and, with MPI, `ranks` say. Collective; on
  // failure nothing is left running. `versions`: what build_info() says, for
  // the log.
  static absl::StatusOr<std::shared_ptr<World>> Start(
      const Config& config, const collective::MpiRanks& ranks = {},
      const std::string& versions = "");
  // Of those of `backend`. `config` is valid, and the ranks agree about it.
  static absl::StatusOr<std::shared_ptr<World>> Start(
      const Config& config, std::unique_ptr<Backend> backend,
      const std::string& versions = "");

  // Collective. Leaves for `reason`, waits up to `timeout` for the other ranks,
  // ends the timeline and takes everything down. Where the world broke or the
  // others did not come, the backend is left as it is (never freed, since peers
  // may still write) and the error is returned: Unavailable, DeadlineExceeded.
  absl::Status Close(const std::string& reason, absl::Duration timeout);

  const collective::Topology& topology() const { return topology_; }
  const base::Logger& logger() const { return logger_; }
  const base::Clock& clock() const { return clock_; }
  const Config& config() const { return config_; }
  const std::string& versions() const { return versions_; }
  // Whether MPI cannot be started again after Close().
  bool only_once() const { return only_once_; }
  // Whether the ranks that are left can make another once this one is broken.
  bool can_be_replaced() const { return can_be_replaced_; }

  // For the operations of the public API. Closed by Close().
  negotiation::Coordinator& coordinator() { return *coordinator_; }

  // True if Close() left things behind that another thread may still use: the
  // World must never be destroyed, and the process should end by _exit.
  bool abandoned() const { return abandoned_; }

  // 0, 1, 2, ...: how often it was called before for this kind and process set
  // since all ranks have joined.
  int64_t NextNumber(absl::string_view kind,
                     negotiation::ProcessSetId process_set);
  // A name that is not used again: "<kind>.noname.<N>", N as NextNumber; after
  // joins "<kind>.noname.<joins>.<N>".
  std::string NextName(absl::string_view kind,
                       negotiation::ProcessSetId process_set);
  // All ranks have joined: numbers start anew, since the ranks may have made
  // different numbers of calls.
  void CountJoin();
  // A process set is removed: there are no more calls for it.
  void ForgetNumbers(negotiation::ProcessSetId process_set);
  // How often all ranks have joined.
  int64_t joins() const { return joins_.load(); }

  // What the layer above keeps with this world: made by `make` when it is first
  // asked for, destroyed with this.
  void* Companion(absl::FunctionRef<std::shared_ptr<void>()> make);

  // Starts recording into `path`. Not collective. FailedPrecondition if
  // recording is on.
  absl::Status OpenRecorder(const std::string& path);
  // Stops recording, after which the part file is complete; nothing if it is
  // off. Returns the path of the merged trace, or an empty string.
  absl::StatusOr<std::string> CloseRecorder();
  // Rank 0 merges the parts, once all ranks have closed theirs. Logs a warning
  // when it cannot.
  void MergeTrace(const std::string& path);
  bool is_recording() const;
  // What events go to: the timeline, and what reports steps to hvdliterun.
  // Null: neither is on.
  std::shared_ptr<timeline::TraceRecorder> recorder() const;
  // Of the training steps that are recorded.
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
  const pid_t main_thread_;  // that made it
  const collective::Topology topology_;
  const bool only_once_;
  const bool can_be_replaced_;
  std::unique_ptr<Backend> backend_;
  ClockOffset clock_offset_;
  bool abandoned_ = false;
  timeline::StepMeter step_meter_;

  mutable base::Mutex mutex_;
  std::atomic<int64_t> joins_{0};
  struct Numbers {  // of a kind and process set
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
