// CoordinatedWorld has coordinators of many ranks in one process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/logging.h"
#include "base/mutex.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/coordinator.h"
#include "tests/testing/in_process/in_process.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {

// The messages that the coordinators logged. Thread-safe.
class LogLines {
 public:
  void Add(absl::string_view line) {
    base::MutexLock lock(&mutex_);
    absl::StrAppend(&text_, line);
  }
  std::string text() const {
    base::MutexLock lock(&mutex_);
    return text_;
  }

 private:
  mutable base::Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

// Every rank has a coordinator with its own background thread; the test chooses
// the threads of the ranks' code. The destructor shuts everything down.
class CoordinatedWorld {
 public:
  // `wrap` may wrap a rank's communicator.
  using Wrap = std::function<std::unique_ptr<collective::Communicator>(
      int rank, std::unique_ptr<collective::Communicator>)>;
  // The same for a rank's channel, which reaches all other ranks.
  using WrapChannel =
      std::function<std::unique_ptr<negotiation::ControlChannel>(
          int rank, std::unique_ptr<negotiation::ControlChannel>)>;

  explicit CoordinatedWorld(int size,
                            negotiation::CoordinatorOptions options = {},
                            const base::Clock* clock = nullptr,
                            const Wrap& wrap = {},
                            const WrapChannel& wrap_channel = {})
      : logger_(base::Severity::kWarning, -1,
                [this](absl::string_view line) { log_.Add(line); }) {
    auto communicators = collective::CreateInProcessWorld(size);
    auto channels = negotiation::CreateInProcessChannels(size).value();
    for (int rank = 0; rank < size; ++rank) {
      auto state = std::make_unique<Rank>();
      state->communicator = wrap ? wrap(rank, std::move(communicators[rank]))
                                 : std::move(communicators[rank]);
      state->channel = wrap_channel
                           ? wrap_channel(rank, std::move(channels[rank]))
                           : std::move(channels[rank]);
      state->topology.rank = rank;
      state->topology.size = size;
      for (int other = 0; other < size; ++other) {
        state->topology.host_of_rank.push_back(absl::StrCat("host", other));
        state->topology.cross_rank_of_rank.push_back(other);
      }
      state->coordinator = std::make_unique<negotiation::Coordinator>(
          options, negotiation::CoordinatorEnvironment{
                       *state->channel, *state->communicator, state->topology,
                       clock != nullptr ? *clock : steady_clock_, logger_,
                       [this](const absl::Status& status) {
                         if (on_stuck) on_stuck(status);
                       }});
      ranks_.push_back(std::move(state));
    }
  }

  ~CoordinatedWorld() {
    OnEveryRank([this](int rank) {
      if (!ranks_[rank]->shut_down) Shutdown(rank).IgnoreError();
    });
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  negotiation::Coordinator& operator[](int rank) {
    return *ranks_[rank]->coordinator;
  }
  collective::Communicator& communicator(int rank) {
    return *ranks_[rank]->communicator;
  }
  absl::Status Shutdown(int rank) {
    ranks_[rank]->shut_down = true;
    return ranks_[rank]->coordinator->Shutdown("shutdown",
                                               absl::InfiniteDuration(), {});
  }
  std::string log() const { return log_.text(); }

  // Runs `body` for all ranks at the same time, each in a thread of its own.
  void OnEveryRank(const std::function<void(int rank)>& body) {
    RunRanks(size(), body);
  }

  // Called by a watchdog. Set it before anything gets stuck.
  std::function<void(const absl::Status&)> on_stuck;

 private:
  struct Rank {
    std::unique_ptr<collective::Communicator> communicator;
    std::unique_ptr<negotiation::ControlChannel> channel;
    collective::Topology topology;
    bool shut_down = false;
    std::unique_ptr<negotiation::Coordinator> coordinator;
  };

  base::SteadyClock steady_clock_;
  LogLines log_;
  base::Logger logger_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace hvdlite::testing
