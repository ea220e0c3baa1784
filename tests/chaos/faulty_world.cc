#include "tests/chaos/faulty_world.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/tree.h"
#include "tests/testing/fakes/forwarding_channel.h"

namespace hvdlite::testing {
namespace {

using Kind = Fault::Kind;
using Point = Fault::Point;

// A slow rank pauses this often, each time after so many calls.
constexpr int kPausesOfASlowRank = 25;
constexpr int kCallsBetweenPauses = 20;

absl::Status Dead(int rank) {
  return absl::UnavailableError(
      absl::StrCat("rank ", rank, " (host", rank, ") has died"));
}

}  // namespace

// ---- The control plane.

class FaultyWorld::Channel final : public ForwardingChannel {
 public:
  Channel(FaultyWorld& world, int rank, int wake,
          std::unique_ptr<negotiation::ControlChannel> inner)
      : ForwardingChannel(std::move(inner)),
        world_(world),
        rank_(rank),
        wake_(wake) {}

  absl::Status Send(int to, std::string bytes) override {
    ++sent_;
    negotiation::wire::Message message;
    const bool gate =
        message.ParseFromString(bytes) && message.gates_size() > 0;
    if (!world_.Pass(rank_, gate ? Point::kAtGate : Point::kNegotiation).ok()) {
      return absl::OkStatus();  // the message is lost
    }
    base::MutexLock lock(&world_.mutex_);
    if (world_.fired_ && world_.IsOnLink(rank_, to)) {
      if (world_.fault_.kind == Kind::kCut) return absl::OkStatus();
      if (world_.ticks_ < world_.until_ || !late_.empty()) {
        late_.push_back({sent_, to, std::move(bytes)});
        return absl::OkStatus();
      }
    }
    return ForwardingChannel::Send(to, std::move(bytes));
  }

  absl::StatusOr<std::optional<negotiation::ControlMessage>> TryReceive()
      override {
    HVDLITE_RETURN_IF_ERROR(world_.Pass(rank_, Point::kStart));
    base::MutexLock lock(&world_.mutex_);
    Rank& self = world_.ranks_[rank_];
    self.looked = world_.ticks_;
    uint64_t count;
    [[maybe_unused]] const ssize_t got = read(wake_, &count, sizeof count);
    while (!late_.empty() && world_.ticks_ >= world_.until_) {
      HVDLITE_RETURN_IF_ERROR(ForwardingChannel::Send(
          late_.front().to, std::move(late_.front().bytes)));
      late_.pop_front();
    }
    HVDLITE_ASSIGN_OR_RETURN(auto message, ForwardingChannel::TryReceive());
    if (message.has_value()) return message;
    for (const int neighbour : world_.neighbours_[rank_]) {
      if (world_.fault_.kind == Kind::kDies && world_.ranks_[neighbour].dead) {
        return Dead(neighbour);
      }
    }
    return message;
  }

  uint64_t delivered() override {
    return late_.empty() ? sent_ : late_.front().number - 1;
  }
  std::vector<int> wake_descriptors() const override {
    std::vector<int> descriptors = ForwardingChannel::wake_descriptors();
    descriptors.push_back(wake_);
    return descriptors;
  }

 private:
  FaultyWorld& world_;
  const int rank_;
  const int wake_;
  struct Late {
    uint64_t number;  // sequence number of the message
    int to;
    std::string bytes;
  };
  std::deque<Late> late_;
  uint64_t sent_ = 0;
};

// ---- The data plane.

// Faults happen in the basic calls, which the larger calls use.
class FaultyWorld::DataPlane final : public collective::Communicator {
 public:
  DataPlane(FaultyWorld& world, int rank,
            std::unique_ptr<collective::Communicator> inner)
      : world_(world),
        world_rank_(rank),
        rank_(inner->rank()),
        size_(inner->size()),
        name_(inner->name()),
        inner_(std::move(inner)) {
    base::MutexLock lock(&world_.mutex_);
    world_.ranks_[world_rank_].communicators.push_back(this);
  }
  ~DataPlane() override {
    base::MutexLock lock(&world_.mutex_);
    std::erase(world_.ranks_[world_rank_].communicators, this);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::string_view name() const override { return name_; }

  absl::Status Allreduce(absl::Span<std::byte> buffer,
                         collective::DataType dtype,
                         collective::ReduceOp op) override {
    return Call([&] { return inner_->Allreduce(buffer, dtype, op); });
  }
  absl::Status Broadcast(absl::Span<std::byte> buffer, int root) override {
    return Call([&] { return inner_->Broadcast(buffer, root); });
  }
  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    return Call([&] { return inner_->Allgather(buffer, bytes_of_rank); });
  }
  absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                             absl::Span<const size_t> bytes_of_rank,
                             collective::DataType dtype,
                             collective::ReduceOp op) override {
    return Call([&] {
      return inner_->ReduceScatter(buffer, bytes_of_rank, dtype, op);
    });
  }
  absl::Status Alltoall(absl::Span<const std::byte> input,
                        absl::Span<const size_t> input_bytes,
                        absl::Span<std::byte> output,
                        absl::Span<const size_t> output_bytes) override {
    return Call([&] {
      return inner_->Alltoall(input, input_bytes, output, output_bytes);
    });
  }
  absl::Status Exchange(int peer, absl::Span<const std::byte> send,
                        absl::Span<std::byte> receive) override {
    return Call([&] { return inner_->Exchange(peer, send, receive); });
  }
  absl::Status Barrier() override {
    return Call([&] { return inner_->Barrier(); });
  }
  absl::StatusOr<std::unique_ptr<Communicator>> CreateSubgroup(
      absl::Span<const int> members, int tag) override {
    HVDLITE_RETURN_IF_ERROR(world_.Pass(world_rank_, Point::kSetMaking));
    absl::StatusOr<std::unique_ptr<Communicator>> made =
        absl::UnavailableError("");
    HVDLITE_RETURN_IF_ERROR(Inside([&] {
      made = inner_->CreateSubgroup(members, tag);
      return made.status();
    }));
    return std::make_unique<DataPlane>(world_, world_rank_, *std::move(made));
  }

  // Ranks that wait for this rank learn that it has ended.
  void End() { inner_.reset(); }

 private:
  template <typename Body>
  absl::Status Inside(const Body& body) {
    SetInside(true);
    const absl::Status status = body();
    SetInside(false);
    return status;
  }
  void SetInside(bool inside) {
    base::MutexLock lock(&world_.mutex_);
    world_.ranks_[world_rank_].inside = inside;
    world_.changed_.NotifyAll();
  }
  template <typename Body>
  absl::Status Call(const Body& body) {
    HVDLITE_RETURN_IF_ERROR(world_.Pass(world_rank_, Point::kPack));
    HVDLITE_RETURN_IF_ERROR(Inside(body));
    return world_.Pass(world_rank_, Point::kUnpack);
  }

  FaultyWorld& world_;
  const int world_rank_;
  const int rank_;
  const int size_;
  const std::string name_;
  std::unique_ptr<collective::Communicator> inner_;
};

// ---- The world.

FaultyWorld::FaultyWorld(const Fault& fault, int size, int tree_arity)
    : fault_(fault) {
  std::vector<int> nodes;
  std::vector<std::string> hosts;
  for (int rank = 0; rank < size; ++rank) {
    nodes.push_back(rank);
    hosts.push_back(absl::StrCat("host", rank));
  }
  const negotiation::WorldLayout layout(nodes, hosts);
  neighbours_.resize(size);
  for (int rank = 0; rank < size; ++rank) {
    const auto place = negotiation::PlaceInTree(rank, tree_arity, layout);
    if (place.parent >= 0) neighbours_[rank].push_back(place.parent);
    for (const auto& child : place.children) {
      neighbours_[rank].push_back(child.rank);
    }
  }
  base::MutexLock lock(&mutex_);
  ranks_.resize(size);
  for (Rank& rank : ranks_) {
    rank.tick = base::Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  }
  pauses_left_ = kPausesOfASlowRank;
}

FaultyWorld::~FaultyWorld() {
  // Communicators of process sets, which a lost world does not close.
  std::vector<DataPlane*> left;
  {
    base::MutexLock lock(&mutex_);
    for (const Rank& rank : ranks_) {
      left.insert(left.end(), rank.communicators.begin(),
                  rank.communicators.end());
    }
  }
  for (DataPlane* const communicator : left) delete communicator;
}

std::unique_ptr<collective::Communicator> FaultyWorld::Wrap(
    int rank, std::unique_ptr<collective::Communicator> inner) {
  return std::make_unique<DataPlane>(*this, rank, std::move(inner));
}

std::unique_ptr<negotiation::ControlChannel> FaultyWorld::WrapChannel(
    int rank, std::unique_ptr<negotiation::ControlChannel> inner) {
  base::MutexLock lock(&mutex_);
  return std::make_unique<Channel>(*this, rank, ranks_[rank].tick.get(),
                                   std::move(inner));
}

void FaultyWorld::Adjust(int rank, negotiation::Operation& operation) {
  if (rank != fault_.rank || !operation.allocate) return;
  operation.allocate = [this, rank, allocate = std::move(operation.allocate)](
                           const negotiation::RowsByMember& rows)
      -> absl::StatusOr<negotiation::Outputs> {
    HVDLITE_RETURN_IF_ERROR(Pass(rank, Point::kAllocate));
    return allocate(rows);
  };
}

bool FaultyWorld::AreNeighbours(int a, int b) const {
  return absl::c_linear_search(neighbours_[a], b);
}

bool FaultyWorld::IsOnLink(int a, int b) const {
  if (fault_.kind != Kind::kCut && fault_.kind != Kind::kDelayed) return false;
  return std::minmax(a, b) == std::minmax(fault_.rank, fault_.peer);
}

absl::Status FaultyWorld::Pass(int rank, Point point) {
  if (rank != fault_.rank) return absl::OkStatus();
  base::MutexLock lock(&mutex_);
  Rank& self = ranks_[rank];
  // All later points of a rank that shuts down count as the shutdown.
  const bool here = point == fault_.point ||
                    (fault_.point == Point::kShutdown && self.shutting_down);
  const bool fires = !fired_ && here && passed_++ == fault_.after;
  if (fires) Fire();
  if (fired_ && fault_.kind == Kind::kSlow && pauses_left_ > 0 &&
      ++calls_ % kCallsBetweenPauses == 0) {
    --pauses_left_;
    still_ = true;
    until_ = ticks_ + fault_.ticks;
  }
  if (still_) StandStill();
  if (self.dead) return Dead(rank);
  if (!fires) return absl::OkStatus();
  if (fault_.kind == Kind::kDataPlaneFails) {
    return absl::UnavailableError("its cable is broken");
  }
  if (fault_.kind == Kind::kNoMemory) throw std::bad_alloc();
  if (fault_.kind == Kind::kCallbackThrows) {
    throw std::runtime_error("the callback's own error");
  }
  return absl::OkStatus();
}

void FaultyWorld::Fire() {
  fired_ = true;
  until_ = ticks_ + fault_.ticks;
  if (fault_.kind == Kind::kDies) {
    ranks_[fault_.rank].dead = true;
    WakeAll();
  }
  still_ = fault_.kind == Kind::kStops || fault_.kind == Kind::kPauses;
}

void FaultyWorld::StandStill() {
  changed_.NotifyAll();
  while (still_) changed_.Wait(&mutex_);
}

bool FaultyWorld::TakesTime() const {
  if (!fired_) return false;
  switch (fault_.kind) {
    case Kind::kStops:
      return true;
    case Kind::kPauses:
    case Kind::kSlow:
      return still_;
    case Kind::kDelayed:
      return ticks_ < until_;
    case Kind::kCut:
      return AreNeighbours(fault_.rank, fault_.peer);
    case Kind::kDies:
    case Kind::kDataPlaneFails:
    case Kind::kNoMemory:
    case Kind::kCallbackThrows:
      return false;
  }
  return false;
}

void FaultyWorld::WakeAll() {
  const uint64_t one = 1;
  for (const Rank& rank : ranks_) {
    [[maybe_unused]] const ssize_t written =
        write(rank.tick.get(), &one, sizeof one);
  }
}

void FaultyWorld::Tick() {
  ++ticks_;
  clock_.Advance(kTick);
  if (fault_.recovers() && still_ && ticks_ >= until_) {
    still_ = false;
    changed_.NotifyAll();
  }
  WakeAll();
}

bool FaultyWorld::Step(const std::function<bool(int rank)>& is_lost) {
  base::MutexLock lock(&mutex_);
  const auto all = [&](const auto& condition) {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!condition(static_cast<int>(rank))) return false;
    }
    return true;
  };
  if (all([&](int rank)
              ABSL_NO_THREAD_SAFETY_ANALYSIS { return ranks_[rank].over; })) {
    return false;
  }
  const bool looked = all([&](int rank) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const Rank& one = ranks_[rank];
    return one.over || one.inside || (still_ && rank == fault_.rank) ||
           one.looked == ticks_;
  });
  // A rank that waits inside the data plane for a stopped rank ends only when
  // that rank ends.
  const bool others_end = all([&](int rank) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const Rank& one = ranks_[rank];
    return one.over || rank == fault_.rank || (one.inside && is_lost(rank));
  });
  if (still_ && others_end) {
    ranks_[fault_.rank].dead = true;
    still_ = false;
    changed_.NotifyAll();
  } else if (TakesTime() && looked) {
    Tick();
  }
  changed_.WaitFor(&mutex_, absl::Milliseconds(1));
  return true;
}

void FaultyWorld::OnShutdown(int rank) {
  base::MutexLock lock(&mutex_);
  ranks_[rank].shutting_down = true;
}

void FaultyWorld::OnOver(int rank) {
  std::vector<DataPlane*> communicators;
  {
    base::MutexLock lock(&mutex_);
    communicators = ranks_[rank].communicators;
  }
  std::reverse(communicators.begin(), communicators.end());
  for (DataPlane* const one : communicators) one->End();
  base::MutexLock lock(&mutex_);
  ranks_[rank].over = true;
  changed_.NotifyAll();
}

bool FaultyWorld::fired() const {
  base::MutexLock lock(&mutex_);
  return fired_;
}

int FaultyWorld::ticks() const {
  base::MutexLock lock(&mutex_);
  return ticks_;
}

}  // namespace hvdlite::testing
