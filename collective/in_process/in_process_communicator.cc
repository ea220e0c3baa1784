#include "collective/in_process/in_process_communicator.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "collective/call_arguments.h"
#include "collective/reduction_kernels.h"

namespace hvdlite::collective {
namespace {

using base::CondVar;
using base::Mutex;
using base::MutexLock;

enum class Kind { kAllreduce, kBroadcast, kBarrier };

absl::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kAllreduce:
      return "Allreduce";
    case Kind::kBroadcast:
      return "Broadcast";
    case Kind::kBarrier:
      return "Barrier";
  }
  return "unknown";
}

// What one rank called.
struct Call {
  Kind kind = Kind::kBarrier;
  absl::Span<std::byte> buffer;
  DataType dtype = DataType::kFloat32;  // of an allreduce
  ReduceOp op = ReduceOp::kSum;         // of an allreduce
  int root = 0;                         // of a broadcast
};

// Equal for calls that fit together.
std::string Describe(const Call& call) {
  switch (call.kind) {
    case Kind::kAllreduce:
      return absl::StrCat("Allreduce of ", call.buffer.size(), " bytes ",
                          collective::NameOf(call.dtype), " ",
                          collective::NameOf(call.op));
    case Kind::kBroadcast:
      return absl::StrCat("Broadcast of ", call.buffer.size(),
                          " bytes from root ", call.root);
    case Kind::kBarrier:
      return "Barrier";
  }
  return "unknown";
}

// "rank 1", "ranks 1, 3".
std::string NameRanks(const std::vector<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks, ", "));
}

bool FitTogether(const Call& a, const Call& b) {
  return a.kind == b.kind && a.buffer.size() == b.buffer.size() &&
         a.dtype == b.dtype && a.op == b.op && a.root == b.root;
}

// Where the ranks meet. An operation is run by the last rank to arrive, on its
// thread, while the others sleep. Thread-safe.
//
// A status is kept as code and text and every rank gets a copy of its own:
// absl::Status shares its text between copies by a count that ThreadSanitizer
// does not see in a library that was built without it.
class World {
 public:
  World(int size, InProcessOptions options)
      : options_(options), calls_(size), present_(size, false) {}

  int size() const { return static_cast<int>(calls_.size()); }

  // Blocks until all ranks have called it, and the operation is done.
  absl::Status Meet(int rank, const Call& call) {
    MutexLock lock(&mutex_);
    if (broken_.code != absl::StatusCode::kOk) return broken_.ToStatus();
    calls_[rank] = call;
    present_[rank] = true;
    if (++num_present_ == size()) {
      RunAndRelease();
      return result_.ToStatus();
    }
    if (!left_.empty()) {
      Break(absl::StatusCode::kUnavailable,
            absl::StrCat(NameOf(call.kind), ": the communicator of ",
                         NameRanks(left_), " of ", size(), " is gone"));
    }
    const uint64_t round = round_;
    // Read only where it counts: no clock when waiting for ever or not at all.
    const bool bounded = options_.deadline != absl::InfiniteDuration();
    const absl::Time end = bounded && options_.deadline > absl::ZeroDuration()
                               ? absl::Now() + options_.deadline
                               : absl::InfinitePast();
    while (round == round_ && broken_.code == absl::StatusCode::kOk) {
      if (!bounded) {
        arrived_.Wait(&mutex_);
        continue;
      }
      const absl::Duration left = end == absl::InfinitePast()
                                      ? absl::ZeroDuration()
                                      : end - absl::Now();
      if (left <= absl::ZeroDuration()) {
        BreakForMissing(call);
      } else {
        arrived_.WaitFor(&mutex_, left);
      }
    }
    // This round's result stays until this rank has arrived at the next one.
    return round != round_ ? result_.ToStatus() : broken_.ToStatus();
  }

  // `rank` will not call again.
  void Leave(int rank) {
    MutexLock lock(&mutex_);
    left_.push_back(rank);
    if (num_present_ > 0 && broken_.code == absl::StatusCode::kOk) {
      Break(absl::StatusCode::kUnavailable,
            absl::StrCat("the communicator of ", NameRanks(left_), " of ",
                         size(), " is gone while other ranks wait for it"));
    }
  }

 private:
  struct Outcome {
    absl::StatusCode code = absl::StatusCode::kOk;
    std::string message;
    absl::Status ToStatus() const { return absl::Status(code, message); }
  };

  void RunAndRelease() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Status status = Run();
    result_ = {status.code(), std::string(status.message())};
    present_.assign(size(), false);
    num_present_ = 0;
    ++round_;
    arrived_.NotifyAll();
  }

  absl::Status Run() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Call& first = calls_[0];
    for (const Call& call : calls_) {
      if (!FitTogether(first, call)) return DescribeMismatch();
      if (call.kind == Kind::kAllreduce) {
        HVDLITE_RETURN_IF_ERROR(
            CheckAllreduceArguments(call.buffer, call.dtype, call.op));
      } else if (call.kind == Kind::kBroadcast) {
        HVDLITE_RETURN_IF_ERROR(CheckBroadcastArguments(call.root, size()));
      }
    }
    if (first.buffer.empty()) return absl::OkStatus();
    int source = first.root;
    if (first.kind == Kind::kAllreduce) {
      source = 0;
      for (int rank = 1; rank < size(); ++rank) {
        Reduce(first.op, first.dtype, calls_[rank].buffer, first.buffer);
      }
    }
    for (int rank = 0; rank < size(); ++rank) {
      if (rank == source) continue;
      std::memcpy(calls_[rank].buffer.data(), calls_[source].buffer.data(),
                  first.buffer.size());
    }
    return absl::OkStatus();
  }

  absl::Status DescribeMismatch() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::map<std::string, std::vector<int>> ranks_of_call;
    for (int rank = 0; rank < size(); ++rank) {
      ranks_of_call[Describe(calls_[rank])].push_back(rank);
    }
    std::map<int, std::string> sides;  // by their lowest ranks
    for (const auto& [description, ranks] : ranks_of_call) {
      sides[ranks.front()] =
          absl::StrCat(NameRanks(ranks), " called ", description);
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "the ranks called different operations: ",
        absl::StrJoin(sides, "; ", [](std::string* out, const auto& side) {
          out->append(side.second);
        })));
  }

  void BreakForMissing(const Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<int> missing;
    for (int rank = 0; rank < size(); ++rank) {
      if (!present_[rank]) missing.push_back(rank);
    }
    Break(absl::StatusCode::kDeadlineExceeded,
          absl::StrCat(NameOf(call.kind), ": ", NameRanks(missing), " of ",
                       size(), " did not arrive within ",
                       absl::FormatDuration(options_.deadline)));
  }

  void Break(absl::StatusCode code, std::string message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    broken_ = {code, std::move(message)};
    arrived_.NotifyAll();
  }

  const InProcessOptions options_;
  Mutex mutex_;
  CondVar arrived_;
  std::vector<Call> calls_ ABSL_GUARDED_BY(mutex_);    // by rank
  std::vector<bool> present_ ABSL_GUARDED_BY(mutex_);  // in this round
  int num_present_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t round_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<int> left_ ABSL_GUARDED_BY(mutex_);
  Outcome result_ ABSL_GUARDED_BY(mutex_);  // of the last round
  Outcome broken_ ABSL_GUARDED_BY(mutex_);  // latched
};

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(int rank, std::shared_ptr<World> world)
      : rank_(rank), world_(std::move(world)) {}
  ~InProcessCommunicator() override { world_->Leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  absl::string_view name() const override { return "IN_PROCESS"; }

  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                         ReduceOp op) override {
    Call call;
    call.kind = Kind::kAllreduce;
    call.buffer = buffer;
    call.dtype = dtype;
    call.op = op;
    return world_->Meet(rank_, call);
  }

  absl::Status Broadcast(absl::Span<std::byte> buffer, int root) override {
    Call call;
    call.kind = Kind::kBroadcast;
    call.buffer = buffer;
    call.root = root;
    return world_->Meet(rank_, call);
  }

  absl::Status Barrier() override { return world_->Meet(rank_, Call{}); }

 private:
  const int rank_;
  const std::shared_ptr<World> world_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> CreateInProcessWorld(
    int size, InProcessOptions options) {
  const auto world = std::make_shared<World>(size, options);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank) {
    communicators.push_back(
        std::make_unique<InProcessCommunicator>(rank, world));
  }
  return communicators;
}

}  // namespace hvdlite::collective
