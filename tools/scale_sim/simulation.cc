#include "tools/scale_sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/negotiator.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::scale_sim {
namespace {

using negotiation::Decision;
using negotiation::Negotiator;

float Microseconds(int64_t ns) { return static_cast<float>(ns) / 1000; }

// A message on its way or in a rank's inbox.
struct Message {
  int from = 0;
  int64_t bytes = 0;
  negotiation::wire::Message content;
};

struct Event {
  enum class Kind : uint8_t {
    kReady,      // the rank's next tensor is ready
    kGatherEnd,  // its background thread has collected submissions long enough
    kArrival,    // a message has reached it
    kReceived,   // it has received a message
    kServed,     // it has sent all its messages
    kBucketEnd,  // the bucket has run on all ranks
  };
  Kind kind = Kind::kReady;
  int rank = 0;
  std::unique_ptr<Message> message = nullptr;  // for kArrival
};

// One rank: its Negotiator, and one core that runs the coordinator.
struct Rank {
  std::unique_ptr<Negotiator> negotiator;
  std::deque<std::unique_ptr<Message>> inbox;
  std::vector<int> submitted;  // tensors not yet passed to the negotiator
  std::optional<int> urgent;   // a tensor to mark as urgent
  bool serving = false;        // the core is busy
  bool look_again = false;     // more work arrived meanwhile
  int64_t gather_end_ns = -1;  // the thread sleeps until then; -1: it is awake
  int next_tensor = 0;         // next tensor to submit in this step
  int waits_for = -1;          // the application waits for this tensor
  double slowness = 1;         // of computation, in this step
};

class World {
 public:
  explicit World(const SimulationOptions& options);
  absl::StatusOr<SimulationResult> Run();

 private:
  int tensors() const {
    return static_cast<int>(options_.workload.requests.size());
  }
  int64_t BytesOf(const std::vector<int>& tensors) const {
    int64_t bytes = 0;
    for (const int tensor : tensors) {
      bytes += options_.workload.requests[tensor].size_bytes();
    }
    return bytes;
  }
  Traffic& traffic() {
    return step_ < options_.warmup_steps ? result_.warmup : result_.steady;
  }

  // ---- The application on each rank.
  void BeginStep(int64_t now_ns);
  void EndStep(int64_t now_ns);
  int64_t ReadyNanos(int rank, int tensor) const;
  void OnReady(int rank, int64_t now_ns);
  // Waits for the last tensor that is pending.
  void WaitForLast(int rank, int64_t now_ns);

  // ---- The coordinator, as in negotiation/engine/coordinator.cc.
  void Wake(int rank, int64_t now_ns);
  void Serve(int rank, int64_t now_ns);
  void ReceiveNext(int rank, int64_t now_ns);
  void OnReceived(int rank, int64_t now_ns);
  void FinishServing(int rank, int64_t now_ns);
  int64_t SendOutgoing(int rank, int64_t now_ns);

  // ---- Buckets. All ranks run the same bucket at a time.
  void BeginBucket(int rank, const Decision& decision, int64_t now_ns);
  void EndBucket(int64_t now_ns);

  void At(int64_t time_ns, Event event) {
    events_.emplace(time_ns, std::move(event));
  }
  void Handle(int64_t now_ns, Event event);
  void Fail(const std::string& what) { status_ = absl::InternalError(what); }

  const SimulationOptions options_;
  // By time; events of the same time are in the order in which they were added.
  std::multimap<int64_t, Event> events_;
  Network network_;
  std::mt19937_64 random_;
  std::vector<Rank> ranks_;
  std::vector<bool> straggles_;
  SimulationResult result_;
  absl::Status status_;

  // The current step of all ranks. A step ends with a bucket, on all ranks at
  // the same time.
  int step_ = 0;
  int64_t step_begin_ns_ = 0;
  std::vector<int64_t> first_ready_ns_;  // per tensor
  std::vector<int64_t> last_ready_ns_;
  std::vector<bool> pending_;
  int pending_count_ = 0;

  // The current bucket.
  uint64_t bucket_number_ = 0;  // 0: none
  std::vector<int> bucket_tensors_;
  int bucket_started_ = 0;
  int64_t bucket_start_ns_ = 0;  // start of the last rank so far
  int64_t bucket_end_ns_ = 0;    // end of the bucket before
  int64_t buckets_ns_ = 0;       // sum over the buckets of this step
};

World::World(const SimulationOptions& options)
    : options_(options),
      network_(options.network, options.ranks),
      random_(options.seed),
      ranks_(options.ranks),
      straggles_(options.ranks, false) {
  std::vector<int> node_of_rank;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    node_of_rank.push_back(rank / options_.network.ranks_per_node);
  }
  Negotiator::Options negotiator;
  negotiator.layout =
      std::make_shared<negotiation::WorldLayout>(std::move(node_of_rank));
  negotiator.tree_arity = options_.tree_arity;
  negotiator.fusion_threshold_bytes = options_.fusion_threshold_bytes;
  negotiator.min_batch_bytes = options_.min_batch_bytes;
  // No timer runs: nothing happens only because time passes.
  negotiator.stall_warning = absl::InfiniteDuration();
  negotiator.heartbeat.timeout = absl::InfiniteDuration();
  for (int rank = 0; rank < options_.ranks; ++rank) {
    negotiator.rank = rank;
    ranks_[rank].negotiator = std::make_unique<Negotiator>(negotiator);
  }
  const negotiation::TreePosition root = negotiation::PlaceInTree(
      /*rank=*/0, options_.tree_arity, *negotiator.layout);
  result_.root_children = static_cast<int>(root.children.size());
  result_.tree_height = root.height;
  for (Traffic* traffic : {&result_.warmup, &result_.steady}) {
    traffic->messages.resize(options_.ranks, 0);
    traffic->bytes.resize(options_.ranks, 0);
  }
  // The stragglers are the first ranks of a shuffled list.
  std::vector<int> order(options_.ranks);
  for (int rank = 0; rank < options_.ranks; ++rank) order[rank] = rank;
  for (int i = 0; i < std::min(options_.stragglers, options_.ranks); ++i) {
    std::swap(order[i], order[i + random_() % (options_.ranks - i)]);
    straggles_[order[i]] = true;
  }
}

int64_t World::ReadyNanos(int rank, int tensor) const {
  const double compute_ns = static_cast<double>(options_.cost.ReadyNanos(
                                options_.workload.ready_fraction[tensor])) *
                            ranks_[rank].slowness;
  const double delay_ns =
      straggles_[rank] ? options_.straggler_delay_ms * 1e6 : 0;
  return step_begin_ns_ + std::llround(compute_ns + delay_ns);
}

void World::BeginStep(int64_t now_ns) {
  step_begin_ns_ = now_ns;
  buckets_ns_ = 0;
  first_ready_ns_.assign(tensors(), INT64_MAX);
  last_ready_ns_.assign(tensors(), 0);
  pending_.assign(tensors(), true);
  pending_count_ = tensors();
  for (int rank = 0; rank < options_.ranks; ++rank) {
    Rank& state = ranks_[rank];
    state.next_tensor = 0;
    state.waits_for = -1;
    state.slowness = 1;
    if (options_.compute_jitter > 0) {
      state.slowness += DrawExponential(options_.compute_jitter, random_);
    }
    for (int tensor = 0; tensor < tensors(); ++tensor) {
      const int64_t ready_ns = ReadyNanos(rank, tensor);
      first_ready_ns_[tensor] = std::min(first_ready_ns_[tensor], ready_ns);
      last_ready_ns_[tensor] = std::max(last_ready_ns_[tensor], ready_ns);
    }
    At(ReadyNanos(rank, 0), {Event::Kind::kReady, rank});
  }
}

void World::EndStep(int64_t now_ns) {
  if (step_ >= options_.warmup_steps) {
    result_.step_ms.push_back(static_cast<double>(now_ns - step_begin_ns_) /
                              1e6);
    result_.computation_ms.push_back(
        static_cast<double>(last_ready_ns_.back() - step_begin_ns_) / 1e6);
    result_.buckets_ms.push_back(static_cast<double>(buckets_ns_) / 1e6);
    for (int tensor = 0; tensor < tensors(); ++tensor) {
      result_.lateness_us.push_back(
          Microseconds(last_ready_ns_[tensor] - first_ready_ns_[tensor]));
    }
  }
  if (step_ + 1 == options_.warmup_steps + options_.steps) return;
  ++step_;
  BeginStep(now_ns);
}

void World::OnReady(int rank, int64_t now_ns) {
  Rank& state = ranks_[rank];
  state.submitted.push_back(state.next_tensor++);
  if (state.next_tensor == tensors()) {
    WaitForLast(rank, now_ns);
    return;
  }
  At(ReadyNanos(rank, state.next_tensor), {Event::Kind::kReady, rank});
  if (state.serving || state.gather_end_ns >= 0) return;  // handled later
  if (BytesOf(state.submitted) >= options_.min_batch_bytes) {
    Serve(rank, now_ns);
    return;
  }
  if (!state.negotiator->is_awaited()) return;
  state.gather_end_ns = now_ns + std::llround(options_.gather_us * 1e3);
  At(state.gather_end_ns, {Event::Kind::kGatherEnd, rank});
}

void World::WaitForLast(int rank, int64_t now_ns) {
  Rank& state = ranks_[rank];
  for (int tensor = tensors() - 1; tensor >= 0; --tensor) {
    if (!pending_[tensor]) continue;
    if (state.waits_for != tensor) state.urgent = tensor;
    state.waits_for = tensor;
    break;
  }
  // The application runs the coordinator, even if the background thread sleeps.
  state.gather_end_ns = -1;
  Wake(rank, now_ns);
}

void World::Wake(int rank, int64_t now_ns) {
  Rank& state = ranks_[rank];
  if (state.gather_end_ns >= 0) return;
  if (state.serving) {
    state.look_again = true;
  } else {
    Serve(rank, now_ns);
  }
}

void World::Serve(int rank, int64_t now_ns) {
  Rank& state = ranks_[rank];
  state.serving = true;
  state.look_again = false;
  state.negotiator->Advance(now_ns);
  for (const int tensor : state.submitted) {
    state.negotiator->Submit(options_.workload.requests[tensor],
                             /*absent=*/false, tensor);
  }
  state.submitted.clear();
  if (state.urgent.has_value()) {
    state.negotiator->MarkUrgent(
        options_.workload.requests[*state.urgent].name);
    state.urgent.reset();
  }
  ReceiveNext(rank, now_ns);
}

void World::ReceiveNext(int rank, int64_t now_ns) {
  const Rank& state = ranks_[rank];
  if (state.inbox.empty()) {
    FinishServing(rank, now_ns);
    return;
  }
  const Message& message = *state.inbox.front();
  At(network_.Receive(message.from, rank, message.bytes, now_ns),
     {Event::Kind::kReceived, rank});
}

void World::OnReceived(int rank, int64_t now_ns) {
  Rank& state = ranks_[rank];
  const std::unique_ptr<Message> message = std::move(state.inbox.front());
  state.inbox.pop_front();
  if (rank == 0) {
    ++traffic().root_received;
    traffic().root_received_bytes += message->bytes;
  }
  const absl::Status status =
      state.negotiator->OnMessage(message->from, message->content);
  if (!status.ok()) {
    Fail(absl::StrCat("rank ", rank, ", message from rank ", message->from,
                      ": ", status.message()));
    return;
  }
  ReceiveNext(rank, now_ns);
}

void World::FinishServing(int rank, int64_t now_ns) {
  Negotiator& negotiator = *ranks_[rank].negotiator;
  negotiator.Plan();
  now_ns = SendOutgoing(rank, now_ns);
  const std::optional<Decision> decision = negotiator.NextDecision();
  now_ns = SendOutgoing(rank, now_ns);
  if (decision.has_value()) BeginBucket(rank, *decision, now_ns);
  At(now_ns, {Event::Kind::kServed, rank});
}

int64_t World::SendOutgoing(int rank, int64_t now_ns) {
  for (Negotiator::Outgoing& outgoing :
       ranks_[rank].negotiator->TakeOutgoing()) {
    auto message = std::make_unique<Message>();
    message->from = rank;
    message->bytes = static_cast<int64_t>(outgoing.message.ByteSizeLong());
    message->content = std::move(outgoing.message);
    ++traffic().messages[rank];
    traffic().bytes[rank] += message->bytes;
    const Network::Departure departure =
        network_.Send(rank, outgoing.to, message->bytes, now_ns);
    now_ns = departure.sent_ns;
    At(departure.arrival_ns,
       {Event::Kind::kArrival, outgoing.to, std::move(message)});
  }
  return now_ns;
}

void World::BeginBucket(int rank, const Decision& decision, int64_t now_ns) {
  if (decision.kind != Decision::Kind::kBucket) {
    Fail(absl::StrCat("rank ", rank, ": decision ", decision.number,
                      " is not a bucket: ", decision.message));
    return;
  }
  if (bucket_started_ == 0) {
    bucket_number_ = decision.number;
    bucket_tensors_.clear();
    for (const Decision::Tensor& tensor : decision.tensors) {
      bucket_tensors_.push_back(static_cast<int>(*tensor.token));
    }
  } else if (decision.number != bucket_number_) {
    Fail(absl::StrCat("rank ", rank, " starts bucket ", decision.number,
                      " while others run bucket ", bucket_number_));
    return;
  }
  if (step_ >= options_.warmup_steps) {
    int64_t possible_ns = bucket_end_ns_;
    for (const int tensor : bucket_tensors_) {
      const int64_t ready_ns = last_ready_ns_[tensor];
      possible_ns = std::max(possible_ns, ready_ns);
      result_.tensor_latency_us.push_back(Microseconds(now_ns - ready_ns));
    }
    result_.bucket_latency_us.push_back(Microseconds(now_ns - possible_ns));
  }
  bucket_start_ns_ = std::max(bucket_start_ns_, now_ns);
  if (++bucket_started_ < options_.ranks) return;
  const int64_t bucket_ns = options_.cost.BucketNanos(BytesOf(bucket_tensors_));
  buckets_ns_ += bucket_ns;
  At(bucket_start_ns_ + bucket_ns, {Event::Kind::kBucketEnd});
}

void World::EndBucket(int64_t now_ns) {
  ++traffic().decisions;
  bucket_started_ = 0;
  bucket_end_ns_ = now_ns;
  for (const int tensor : bucket_tensors_) pending_[tensor] = false;
  pending_count_ -= static_cast<int>(bucket_tensors_.size());
  for (Rank& state : ranks_) state.negotiator->OnDone();
  if (options_.on_progress) {
    options_.on_progress(static_cast<int>(bucket_tensors_.size()));
  }
  if (pending_count_ == 0) {
    EndStep(now_ns);
    return;
  }
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (ranks_[rank].waits_for >= 0) {
      WaitForLast(rank, now_ns);
    } else {
      Wake(rank, now_ns);
    }
  }
}

void World::Handle(int64_t now_ns, Event event) {
  Rank& state = ranks_[event.rank];
  switch (event.kind) {
    case Event::Kind::kReady:
      OnReady(event.rank, now_ns);
      break;
    case Event::Kind::kGatherEnd:
      // The application may have taken over meanwhile.
      if (state.gather_end_ns != now_ns) break;
      state.gather_end_ns = -1;
      Wake(event.rank, now_ns);
      break;
    case Event::Kind::kArrival:
      state.inbox.push_back(std::move(event.message));
      Wake(event.rank, now_ns);
      break;
    case Event::Kind::kReceived:
      OnReceived(event.rank, now_ns);
      break;
    case Event::Kind::kServed:
      state.serving = false;
      if (state.look_again || !state.inbox.empty() ||
          !state.submitted.empty()) {
        Serve(event.rank, now_ns);
      }
      break;
    case Event::Kind::kBucketEnd:
      EndBucket(now_ns);
      break;
  }
}

absl::StatusOr<SimulationResult> World::Run() {
  BeginStep(/*now_ns=*/0);
  while (status_.ok() && !events_.empty()) {
    auto next = events_.extract(events_.begin());
    Handle(next.key(), std::move(next.mapped()));
  }
  if (!status_.ok()) return status_;
  if (pending_count_ > 0) {
    return absl::InternalError(
        absl::StrCat("step ", step_, ": ", pending_count_,
                     " tensors are undecided, and no event is left"));
  }
  return std::move(result_);
}

}  // namespace

absl::StatusOr<SimulationResult> Simulate(const SimulationOptions& options) {
  return World(options).Run();
}

}  // namespace hvdlite::scale_sim
