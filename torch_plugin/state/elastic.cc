#include <hvdlite/broadcast_state.h>
#include <hvdlite/elastic.h>
#include <hvdlite/errors.h>
#include <hvdlite/ops.h>
#include <hvdlite/timeline.h>
#include <hvdlite/world.h>
#include <string.h>
#include <torch/types.h>

#include <csignal>
#include <exception>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "base/fork_mark.h"
#include "base/logging.h"
#include "negotiation/world/current_world.h"
#include "negotiation/world/world.h"
#include "torch_plugin/state/archives.h"
#include "torch_plugin/state/commits.h"
#include "torch_plugin/state/rank_buffers.h"
#include "torch_plugin/state/state_parts.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::elastic {
namespace {

using internal::ThrowError;
using internal::Warn;

constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGUSR1};
volatile std::sig_atomic_t last_signal = 0;
struct sigaction actions_before[std::size(kStopSignals)];

// Keys in an archive besides the parts and the commit's number.
constexpr char kNewest[] = "newest";  // largest known number
constexpr char kRanks[] = "ranks";

}  // namespace

class State::Impl {
 public:
  // The path becomes absolute, since a thread writes to it later.
  explicit Impl(StateOptions options)
      : options_(options.path(base::AbsolutePath(options.path()))),
        commits_(options_) {}

  // Keeps the commit in memory. Rank 0 also sends it to store and file.
  void Commit(Save save) {
    if (Keep() && rank() == 0) commits_.Send(save);
  }

  // Returns false if there is not enough memory.
  bool Keep() {
    absl::StatusOr<std::string> bytes = internal::Serialise(
        absl::StrCat("a commit of ", options_.name()),
        [this](torch::serialize::OutputArchive& archive) { Write(archive); },
        commits_.last() == nullptr ? 0 : commits_.last()->bytes.size());
    buffers_ = {};
    if (!bytes.ok()) {
      if (has_memory_) {
        Warn(absl::StrCat(bytes.status().message(),
                          "; continuing with the previous commit; further "
                          "failures are not logged until there is enough "
                          "memory"));
      }
      has_memory_ = false;
      return false;
    }
    has_memory_ = true;
    commits_.Keep(*std::move(bytes));
    return true;
  }

  // Collects buffers for the next commit.
  void GatherBuffers() {
    buffers_ = RankBuffers::Gather(
        parts_.models, absl::StrCat("elastic.", options_.name(), ".buffers"),
        internal::CurrentWorld()->can_be_replaced());
  }

  // On rank 0: restores the parts from the last commit. Throws with its origin,
  // and changes nothing, if it belongs to another training.
  void Load() {
    const auto& last = commits_.last();
    if (last == nullptr) {
      ThrowError(
          "elastic::State: there is no commit to restore, neither in memory "
          "nor in the launcher's store nor in a file; call commit() first");
    }
    try {
      torch::serialize::InputArchive archive;
      archive.load_from(last->bytes.data(), last->bytes.size());
      Read(archive);
    } catch (const std::exception& error) {
      ThrowError(absl::StrCat(commits_.origin(),
                              " does not fit: ", internal::TextOf(error)));
    }
    restored_commit_ = last->number;
  }

  // Called after the world was replaced: all ranks go back to the newest commit
  // that one of them, the store or the file has.
  void GoBack() {
    question_.reset();
    // Some ranks may not know the signal; the next exchange finds it again.
    stop_signal_ = 0;
    if (rank() == 0) commits_.FindNewer();
    for (DistributedOptimizer* optimizer : distributed_) optimizer->Rejoin();
    const auto agree = [](int64_t value, ReduceOp op, const char* name) {
      return allreduce(torch::tensor(value, torch::kInt64),
                       AllreduceOptions().op(op).name(name))
          .item<int64_t>();
    };
    const int64_t own = commits_.last() == nullptr
                            ? -1
                            : static_cast<int64_t>(commits_.last()->number);
    const int64_t newest = agree(own, ReduceOp::Max, "elastic.newest");
    const int64_t root =
        agree(own == newest ? rank() : size(), ReduceOp::Min, "elastic.root");
    if (rank() == root) Load();
    Sync(static_cast<int>(root));
  }

  void Sync(int root_rank) {
    for (torch::nn::Module* model : parts_.models) {
      broadcast_parameters(*model, root_rank);
    }
    for (torch::optim::Optimizer* optimizer : parts_.optimizers) {
      broadcast_optimizer_state(*optimizer, root_rank);
    }
    const bool is_root = rank() == root_rank;
    std::string rest;
    if (is_root) {
      rest = internal::ValueOrThrow(internal::Serialise(
          "what elastic::State::sync() broadcasts",
          [this](torch::serialize::OutputArchive& archive) {
            archive.write(kCommitNumber,
                          static_cast<int64_t>(restored_commit_));
            archive.write(kNewest,
                          static_cast<int64_t>(commits_.newest_number()));
            archive.write(kRanks, int64_t{restored_ranks_});
            parts_.WriteRest(archive);
            restored_buffers_.Write(archive);
          }));
    }
    rest = broadcast_object(rest, root_rank);
    if (!is_root) {
      torch::serialize::InputArchive archive;
      archive.load_from(rest.data(), rest.size());
      restored_commit_ =
          static_cast<uint64_t>(ReadInteger(archive, kCommitNumber));
      commits_.SetNewestNumber(
          static_cast<uint64_t>(ReadInteger(archive, kNewest)));
      restored_ranks_ = static_cast<int>(ReadInteger(archive, kRanks));
      parts_.ReadRest(archive);
      restored_buffers_ = RankBuffers::Read(archive);
    }
    std::exchange(restored_buffers_, {}).Restore(parts_.models);
  }

  void AgreeToStop() {
    if (question_) stop_signal_ = question_->wait().item<int>();
    question_ = allreduce_async(
        torch::tensor(static_cast<int>(last_signal)),
        AllreduceOptions()
            .op(ReduceOp::Max)
            .name(absl::StrCat("elastic.", options_.name(), ".stop_signal")));
  }

  // On rank 0: whether the last commit is in the file or need not be there.
  bool Flush() {
    if (question_) (void)std::exchange(question_, {})->wait();
    return rank() != 0 || commits_.Flush();
  }

  const base::ForkMark mark_;
  const StateOptions options_;
  Commits commits_;
  StateParts parts_;
  std::vector<DistributedOptimizer*> distributed_;  // some of the optimizers
  int stop_signal_ = 0;
  int restored_ranks_ = 0;
  uint64_t restored_commit_ = 0;

 private:
  void Write(torch::serialize::OutputArchive& archive) const {
    archive.write(kCommitNumber,
                  static_cast<int64_t>(commits_.newest_number() + 1));
    archive.write(kRanks, int64_t{size()});
    parts_.Write(archive, options_.name());
    buffers_.Write(archive);
  }

  static int64_t ReadInteger(torch::serialize::InputArchive& archive,
                             const char* key) {
    c10::IValue value;
    archive.read(key, value);
    return value.toInt();
  }

  void Read(torch::serialize::InputArchive& archive) {
    // Read these first, so that an error changes nothing.
    RankBuffers buffers = RankBuffers::Read(archive);
    c10::IValue ranks;
    const bool has_ranks = archive.try_read(kRanks, ranks) && ranks.isInt();
    if (parts_.Read(archive, options_.name(), options_.optimizer_options())) {
      restored_ranks_ = has_ranks ? static_cast<int>(ranks.toInt()) : 0;
      restored_buffers_ = std::move(buffers);
      return;
    }
    if (!options_.read_other()) {
      ThrowError("it was not written by elastic::State");
    }
    restored_ranks_ = 0;
    options_.read_other()(archive);
  }

  bool has_memory_ = true;
  RankBuffers buffers_;           // for the next commit
  RankBuffers restored_buffers_;  // kept until all ranks have theirs
  std::optional<Work> question_;  // exchange in flight
};

namespace {

// Runs `action` on rank 0. Returns the text of its exception on all ranks, or
// "".
std::string ProblemOfRankZero(const std::function<void()>& action) {
  std::string problem;
  if (rank() == 0) {
    try {
      action();
    } catch (const std::exception& error) {
      problem = internal::TextOf(error);
      if (problem.empty()) problem = "an exception without a message";
    }
  }
  return broadcast_object(problem, /*root_rank=*/0);
}

void OnRankZero(const std::function<void()>& action) {
  const std::string problem = ProblemOfRankZero(action);
  if (!problem.empty()) ThrowError(problem);
}

// A logger that ignores HVDLITE_LOG_LEVEL, since no other output explains why
// the program continues or ends.
base::Logger OwnLog() {
  const auto world = internal::CurrentWorldOrNull();
  return {base::Severity::kInfo,
          world == nullptr ? -1 : world->topology().rank};
}

void TellOnce(const std::string& text) {
  if (rank() == 0) OwnLog().Info(text);
}

}  // namespace

State::State(const StateOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}

State::~State() {
  if (impl_->mark_.forked()) (void)impl_.release();
}

State& State::model(torch::nn::Module& model) {
  impl_->parts_.models.push_back(&model);
  return *this;
}

State& State::optimizer(torch::optim::Optimizer& optimizer) {
  impl_->parts_.optimizers.push_back(&optimizer);
  return *this;
}

State& State::optimizer(DistributedOptimizer& optimizer) {
  impl_->distributed_.push_back(&optimizer);
  return this->optimizer(optimizer.inner());
}

State& State::sampler(DistributedSampler& sampler) {
  impl_->parts_.samplers.push_back(&sampler);
  return *this;
}

State& State::AddValue(const std::string& name, Get get, Set set) {
  impl_->parts_.values.push_back({name, std::move(get), std::move(set)});
  return *this;
}

void State::commit(Save save) {
  if (impl_->options_.agrees_to_stop()) impl_->GatherBuffers();
  if (rank() == 0 || internal::CurrentWorld()->can_be_replaced()) {
    const TraceSpan span("COMMIT");
    impl_->Commit(save);
  }
  if (impl_->options_.agrees_to_stop()) impl_->AgreeToStop();
}

void State::gather_buffers() { impl_->GatherBuffers(); }

void State::agree_to_stop() { impl_->AgreeToStop(); }

int stopped_exit_code(int signal) {
  return signal == SIGINT ? 128 + SIGINT : kStoppedExitCode;
}

int State::stop_signal() const { return impl_->stop_signal_; }

bool State::can_restore() {
  OnRankZero([&] { impl_->commits_.Find(); });
  return broadcast_object(impl_->commits_.last() != nullptr ? "yes" : "", 0) ==
         "yes";
}

void State::restore() {
  OnRankZero([&] {
    impl_->commits_.Find();
    impl_->Load();
  });
  sync();
}

void State::restore_from(const std::string& file) {
  impl_->commits_.Forget();
  OnRankZero([&] {
    impl_->commits_.ReadFile(base::AbsolutePath(file));
    impl_->Load();
  });
  sync();
}

void State::sync(int root_rank) { impl_->Sync(root_rank); }

void State::flush() {
  // All ranks take part in the exchange that is in flight.
  bool saved = impl_->Flush();
  saved = broadcast_object(saved ? "yes" : "", 0) == "yes";
  if (saved) return;
  ThrowError(absl::StrCat("the last commit could not be written to '",
                          impl_->options_.path(),
                          "' on rank 0; see its warning for the reason"));
}

int State::restored_ranks() const { return impl_->restored_ranks_; }

uint64_t State::restored_commit() const { return impl_->restored_commit_; }

StopSignals::StopSignals() {
  last_signal = 0;
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    struct sigaction action = {};
    action.sa_handler = [](int signal) { last_signal = signal; };
    action.sa_flags = SA_RESTART;
    // A second signal must end the process without waiting.
    if (kStopSignals[i] != SIGUSR1) action.sa_flags |= SA_RESETHAND;
    sigaction(kStopSignals[i], &action, &actions_before[i]);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    sigaction(kStopSignals[i], &actions_before[i], nullptr);
  }
  last_signal = 0;
}

std::optional<int> State::Begin(bool in_place) {
  if (in_place) {
    impl_->GoBack();
  } else {
    int exit_code = 0;
    const std::string problem = ProblemOfRankZero([&] {
      exit_code = 2;
      try {
        impl_->commits_.Find();
        if (impl_->commits_.last() != nullptr) impl_->Load();
      } catch (const StoreFailure&) {
        exit_code = 1;
        throw;
      }
    });
    if (!problem.empty()) {
      if (rank() == 0) OwnLog().Error(problem);
      return std::stoi(broadcast_object(std::to_string(exit_code), 0));
    }
    sync();
  }
  if (restored_commit() > 0) {
    TellOnce(absl::StrCat("continuing from commit ", restored_commit(),
                          ", made by ", restored_ranks(),
                          restored_ranks() == 1 ? " rank" : " ranks"));
  }
  // A rank may be lost before the first commit, too.
  if (internal::CurrentWorld()->can_be_replaced()) {
    impl_->GatherBuffers();
    impl_->Keep();
  }
  return std::nullopt;
}

bool replace_world() {
  internal::ThrowIfForked();
  const auto world = internal::CurrentWorldOrNull();
  if (world == nullptr || !world->can_be_replaced()) return false;
  internal::ThrowIfError(internal::ReplaceBrokenWorld());
  return true;
}

int replaced_worlds() {
  internal::ThrowIfForked();
  return internal::ReplacedWorlds();
}

int run(State& state, const std::function<void()>& train) {
  const StopSignals signals;
  try {
    for (bool in_place = false;; in_place = true) {
      try {
        if (const auto exit_code = state.Begin(in_place)) return *exit_code;
        train();
        state.flush();
        break;
      } catch (const WorldBroken&) {
        if (!replace_world()) throw;
      }
    }
    if (!state.should_stop()) return 0;
    TellOnce(absl::StrCat("stopped by ", strsignal(state.stop_signal()),
                          "; start the program again to continue from the last "
                          "commit"));
    return stopped_exit_code(state.stop_signal());
  } catch (const std::exception& error) {
    const std::string text = internal::TextOf(error);
    OwnLog().Error(text);
    if (const auto world = internal::CurrentWorldOrNull(); world != nullptr) {
      world->coordinator().Leave(
          absl::StrCat("an exception on rank ", world->topology().rank,
                       " ended its elastic::run(): ", text));
    }
    return 1;
  }
}

}  // namespace hvdlite::elastic
