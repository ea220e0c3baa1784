#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "collective/call_arguments.h"
#include "tests/testing/in_process/call.h"
#include "tests/testing/in_process/in_process.h"

namespace hvdlite::collective {

// Ranks that call an operation wait here until all its members have called it.
// The last one to arrive carries it out on its thread while the others sleep.
// Groups without a common rank do not wait for each other. Thread-safe.
//
// A status is kept as code and text, and every rank gets its own copy. Copies
// of an absl::Status share a text with a reference count, which ThreadSanitizer
// does not see in a library that was built without it.
class SharedWorld {
 public:
  // `ranks_in_outermost`: the numbers that its ranks have in the outermost
  // world, for messages.
  SharedWorld(std::vector<int> ranks_in_outermost, bool is_subgroup);

  int size() const { return static_cast<int>(all_ranks_.size()); }
  absl::Span<const int> all_ranks() const { return all_ranks_; }

  // Blocks until all members of `call` have called it and it is done; `rank` is
  // one of them. InvalidArgument for all members if their calls do not match;
  // for all ranks if every rank waits for others that wait for something else.
  // Unavailable if a member is gone; this breaks the world.
  absl::Status Meet(int rank, const Call& call);

  // `rank` will not call again.
  void Leave(int rank);

 private:
  struct Outcome {
    absl::StatusCode code = absl::StatusCode::kOk;
    std::string message;
    absl::Status ToStatus() const { return absl::Status(code, message); }
  };

  // The state of a rank.
  struct Place {
    enum class State {
      kAway,     // not calling anything
      kWaiting,  // for other members
      kRunning,  // all members are there; one of them carries the call out
      kDone      // the outcome can be taken
    };
    State state = State::kAway;
    bool gone = false;
    Call call;
    Outcome outcome;
    base::CondVar changed;  // the state, or the world broke
  };

  // Whether the rank waits for the same members as `call`.
  bool IsWaitingFor(int rank, const Call& call) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // If all members have called, returns their calls, which are then running;
  // otherwise empty.
  std::vector<Call> StartIfComplete(const Call& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Run(absl::Span<const Call> calls);
  absl::Status Wait(int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Ends waits that no rank can end any more.
  void EndHopelessWaits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(absl::Span<const int> ranks, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<int> all_ranks_;  // 0, 1, ...
  const std::vector<int> ranks_in_outermost_;
  const std::string where_;  // ends every message
  base::Mutex mutex_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);  // by rank
  Outcome broken_ ABSL_GUARDED_BY(mutex_);             // latched
};

namespace {

using base::MutexLock;

std::vector<int> FirstRanks(size_t count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

SharedWorld::SharedWorld(std::vector<int> ranks_in_outermost, bool is_subgroup)
    : all_ranks_(FirstRanks(ranks_in_outermost.size())),
      ranks_in_outermost_(std::move(ranks_in_outermost)),
      where_(is_subgroup ? absl::StrCat(" (counted in the subgroup of ",
                                        NameRanks(ranks_in_outermost_), ")")
                         : ""),
      places_(all_ranks_.size()) {}

absl::Status SharedWorld::Meet(int rank, const Call& call) {
  std::vector<Call> calls;
  {
    MutexLock lock(&mutex_);
    if (broken_.code != absl::StatusCode::kOk) return broken_.ToStatus();
    places_[rank].call = call;
    places_[rank].state = Place::State::kWaiting;
    calls = StartIfComplete(call);
    if (calls.empty()) {
      EndHopelessWaits();
      return Wait(rank);
    }
  }
  const absl::Status status = Run(calls);
  MutexLock lock(&mutex_);
  Finish(call.members, status);
  places_[rank].state = Place::State::kAway;
  return places_[rank].outcome.ToStatus();
}

void SharedWorld::Leave(int rank) {
  MutexLock lock(&mutex_);
  places_[rank].gone = true;
  EndHopelessWaits();
}

bool SharedWorld::IsWaitingFor(int rank, const Call& call) const {
  const Place& place = places_[rank];
  return place.state == Place::State::kWaiting &&
         place.call.members == call.members;
}

std::vector<Call> SharedWorld::StartIfComplete(const Call& call) {
  for (const int member : call.members) {
    if (!IsWaitingFor(member, call)) return {};
  }
  std::vector<Call> calls;
  calls.reserve(call.members.size());
  for (const int member : call.members) {
    places_[member].state = Place::State::kRunning;
    calls.push_back(places_[member].call);
  }
  return calls;
}

absl::Status SharedWorld::Run(absl::Span<const Call> calls) {
  HVDLITE_RETURN_IF_ERROR(CheckCalls(calls));
  if (calls[0].kind == Call::Kind::kCreateSubgroup) {
    std::vector<int> ranks;
    for (const int member : calls[0].members) {
      ranks.push_back(ranks_in_outermost_[member]);
    }
    const auto subgroup =
        std::make_shared<SharedWorld>(std::move(ranks), /*is_subgroup=*/true);
    for (const Call& call : calls) *call.subgroup = subgroup;
  } else {
    Execute(calls);
  }
  return absl::OkStatus();
}

absl::Status SharedWorld::Wait(int rank) {
  Place& place = places_[rank];
  while (place.state == Place::State::kWaiting &&
         broken_.code == absl::StatusCode::kOk) {
    place.changed.Wait(&mutex_);
  }
  // A rank must not leave while another thread works on its buffers.
  while (place.state == Place::State::kRunning) place.changed.Wait(&mutex_);
  const Outcome& outcome =
      place.state == Place::State::kDone ? place.outcome : broken_;
  place.state = Place::State::kAway;
  return outcome.ToStatus();
}

void SharedWorld::EndHopelessWaits() {
  if (broken_.code != absl::StatusCode::kOk) return;
  std::vector<int> waiting;
  std::vector<int> gone;
  bool somebody_may_come = false;
  for (const int rank : all_ranks_) {
    if (places_[rank].gone) {
      gone.push_back(rank);
    } else if (places_[rank].state == Place::State::kWaiting) {
      waiting.push_back(rank);
    } else {
      somebody_may_come = true;
    }
  }
  std::vector<Call> calls;
  for (const int rank : waiting) {
    const Call& call = places_[rank].call;
    if (std::find_first_of(call.members.begin(), call.members.end(),
                           gone.begin(), gone.end()) != call.members.end()) {
      broken_ = {
          absl::StatusCode::kUnavailable,
          absl::StrCat(NameOf(call.kind), ": the communicator of ",
                       NameRanks(gone), " of ", size(), " is gone", where_)};
      for (Place& place : places_) place.changed.NotifyOne();
      return;
    }
    calls.push_back(call);
  }
  if (!waiting.empty() && !somebody_may_come) {
    Finish(waiting, DifferentCallsError(waiting, calls));
  }
}

void SharedWorld::Finish(absl::Span<const int> ranks,
                         const absl::Status& status) {
  for (const int rank : ranks) {
    Place& place = places_[rank];
    place.outcome = {
        status.code(),
        status.ok() ? std::string() : absl::StrCat(status.message(), where_)};
    place.state = Place::State::kDone;
    place.changed.NotifyOne();
  }
}

namespace {

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(int rank, std::shared_ptr<SharedWorld> world)
      : rank_(rank), world_(std::move(world)) {}
  ~InProcessCommunicator() override { world_->Leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  absl::string_view name() const override { return "IN_PROCESS"; }

  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                         ReduceOp op) override {
    return world_->Meet(rank_, {.kind = Call::Kind::kAllreduce,
                                .members = world_->all_ranks(),
                                .buffer = buffer,
                                .dtype = dtype,
                                .op = op});
  }

  size_t allreduces_at_once(size_t bytes) const override {
    return bytes >= 1024 ? kAtOnce : 1;
  }
  absl::Status StartAllreduce(absl::Span<std::byte> buffer, DataType dtype,
                              ReduceOp op) override {
    started_.push_back({buffer, dtype, op});
    return absl::OkStatus();
  }
  // The ranks advance together when the maximum number is in progress, or after
  // some calls.
  absl::StatusOr<Headway> AdvanceAllreduces() override {
    if (started_.size() < kAtOnce && ++calls_ % 4 != 0) {
      return calls_ % 4 == 1 ? Headway::kSome : Headway::kNone;
    }
    const Started next = started_.front();
    started_.pop_front();
    HVDLITE_RETURN_IF_ERROR(Allreduce(next.buffer, next.dtype, next.op));
    return Headway::kDone;
  }

  absl::Status Broadcast(absl::Span<std::byte> buffer, int root) override {
    return world_->Meet(rank_, {.kind = Call::Kind::kBroadcast,
                                .members = world_->all_ranks(),
                                .buffer = buffer,
                                .root = root});
  }

  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    return world_->Meet(rank_, {.kind = Call::Kind::kAllgather,
                                .members = world_->all_ranks(),
                                .buffer = buffer,
                                .bytes_of_rank = bytes_of_rank});
  }

  absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                             absl::Span<const size_t> bytes_of_rank,
                             DataType dtype, ReduceOp op) override {
    return world_->Meet(rank_, {.kind = Call::Kind::kReduceScatter,
                                .members = world_->all_ranks(),
                                .buffer = buffer,
                                .bytes_of_rank = bytes_of_rank,
                                .dtype = dtype,
                                .op = op});
  }

  absl::Status Alltoall(absl::Span<const std::byte> input,
                        absl::Span<const size_t> input_bytes,
                        absl::Span<std::byte> output,
                        absl::Span<const size_t> output_bytes) override {
    return world_->Meet(rank_, {.kind = Call::Kind::kAlltoall,
                                .members = world_->all_ranks(),
                                .buffer = output,
                                .bytes_of_rank = output_bytes,
                                .input = input,
                                .input_bytes = input_bytes});
  }

  absl::Status Exchange(int peer, absl::Span<const std::byte> send,
                        absl::Span<std::byte> receive) override {
    HVDLITE_RETURN_IF_ERROR(CheckExchangeArguments(peer, rank_, size()));
    const int members[] = {std::min(rank_, peer), std::max(rank_, peer)};
    size_t input_bytes[] = {0, 0};
    size_t output_bytes[] = {0, 0};
    const int index_of_peer = peer < rank_ ? 0 : 1;
    input_bytes[index_of_peer] = send.size();
    output_bytes[index_of_peer] = receive.size();
    return world_->Meet(rank_, {.kind = Call::Kind::kExchange,
                                .members = members,
                                .buffer = receive,
                                .bytes_of_rank = output_bytes,
                                .input = send,
                                .input_bytes = input_bytes});
  }

  absl::Status Barrier() override {
    return world_->Meet(
        rank_, {.kind = Call::Kind::kBarrier, .members = world_->all_ranks()});
  }

  absl::StatusOr<std::unique_ptr<Communicator>> CreateSubgroup(
      absl::Span<const int> members, int tag) override {
    HVDLITE_RETURN_IF_ERROR(
        CheckSubgroupArguments(members, tag, rank_, size()));
    std::shared_ptr<SharedWorld> subgroup;
    HVDLITE_RETURN_IF_ERROR(
        world_->Meet(rank_, {.kind = Call::Kind::kCreateSubgroup,
                             .members = members,
                             .tag = tag,
                             .subgroup = &subgroup}));
    const auto index = std::find(members.begin(), members.end(), rank_);
    return std::make_unique<InProcessCommunicator>(
        static_cast<int>(index - members.begin()), std::move(subgroup));
  }

 private:
  static constexpr size_t kAtOnce = 3;
  struct Started {
    absl::Span<std::byte> buffer;
    DataType dtype;
    ReduceOp op;
  };

  const int rank_;
  const std::shared_ptr<SharedWorld> world_;
  std::deque<Started> started_;
  int calls_ = 0;  // calls of AdvanceAllreduces
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> CreateInProcessWorld(int size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto world = std::make_shared<SharedWorld>(std::move(ranks),
                                                   /*is_subgroup=*/false);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank) {
    communicators.push_back(
        std::make_unique<InProcessCommunicator>(rank, world));
  }
  return communicators;
}

}  // namespace hvdlite::collective
