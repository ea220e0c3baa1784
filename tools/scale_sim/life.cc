#include "tools/scale_sim/life.h"

#include <time.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "negotiation/protocol/negotiator.h"
#include "tools/scale_sim/workload.h"

namespace hvdlite::scale_sim {
namespace {

using negotiation::Decision;
using negotiation::Negotiator;
using Requests = std::vector<negotiation::Request>;

constexpr absl::Duration kStallWarning = absl::Seconds(60);

int64_t ThreadCpuNanos() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

struct LifeRank {
  std::unique_ptr<Negotiator> negotiator;
  std::vector<bool> pending;  // of the requests that are submitted
  int left = 0;               // how many of them
  bool shut_down = false;
  int64_t timer_ns = -1;  // when it is called next only because of the time
  // In this phase.
  int64_t messages = 0;
  int64_t bytes = 0;
  int64_t cpu_ns = 0;
};

struct LifeEvent {
  enum class Kind : uint8_t { kArrival, kReceived, kTimer };
  int64_t time_ns = 0;
  uint64_t sequence = 0;
  Kind kind = Kind::kTimer;
  int rank = 0;
  int from = 0;
  std::shared_ptr<const std::string> bytes;

  friend bool operator>(const LifeEvent& a, const LifeEvent& b) {
    return std::tie(a.time_ns, a.sequence) > std::tie(b.time_ns, b.sequence);
  }
};

class LifeWorld {
 public:
  explicit LifeWorld(const LifeOptions& options);
  absl::StatusOr<std::vector<PhaseLoad>> Run();

 private:
  int last() const { return options_.ranks - 1; }
  // The rank does something, now; then what follows from it.
  void Act(int rank, const std::function<void(Negotiator&)>& act);
  void Send(int rank, std::vector<Negotiator::Outgoing> outgoing);
  void Execute(int rank, const Decision& decision);
  // Somebody waits for the last operation that is pending.
  void WaitForLast(int rank);
  void SetTimer(int rank);
  void Submit(const Requests& requests, int first_rank, int end_rank);
  // Until `done`, or nothing moves.
  void RunUntil(const std::function<bool()>& done);
  void RunToTheEnd() {
    RunUntil([this] { return unfinished_ == 0; });
  }
  void RunToWarning();
  void BeginPhase(const std::string& phase);
  void EndPhase();

  const LifeOptions options_;
  Network network_;
  std::vector<LifeRank> ranks_;
  std::priority_queue<LifeEvent, std::vector<LifeEvent>, std::greater<>>
      events_;
  uint64_t sequence_ = 0;
  int64_t now_ns_ = 1;
  int64_t in_flight_ = 0;  // messages
  const Requests* requests_ = nullptr;
  int unfinished_ = 0;  // ranks that have operations pending
  int shut_down_ = 0;
  int64_t phase_begin_ns_ = 0;
  std::vector<PhaseLoad> phases_;
  absl::Status status_;
};

LifeWorld::LifeWorld(const LifeOptions& options)
    : options_(options),
      network_(options.network, options.ranks),
      ranks_(options.ranks) {
  std::vector<int> node_of_rank;
  std::vector<std::string> names;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    node_of_rank.push_back(rank / options_.network.ranks_per_node);
    names.push_back(absl::StrCat("node", node_of_rank.back()));
  }
  Negotiator::Options negotiator;
  negotiator.layout = std::make_shared<negotiation::WorldLayout>(
      std::move(node_of_rank), std::move(names));
  negotiator.tree_arity = options_.tree_arity;
  negotiator.stall_warning = kStallWarning;
  negotiator.heartbeat.timeout = absl::InfiniteDuration();
  for (int rank = 0; rank < options_.ranks; ++rank) {
    negotiator.rank = rank;
    ranks_[rank].negotiator = std::make_unique<Negotiator>(negotiator);
  }
}

void LifeWorld::Act(int rank, const std::function<void(Negotiator&)>& act) {
  LifeRank& state = ranks_[rank];
  Negotiator& negotiator = *state.negotiator;
  const int64_t start_ns = options_.measure_cpu ? ThreadCpuNanos() : 0;
  negotiator.Advance(now_ns_);
  act(negotiator);
  std::vector<Negotiator::Outgoing> outgoing;
  for (std::string& warning : negotiator.TakeWarnings()) {
    phases_.back().warnings.push_back(std::move(warning));
  }
  if (options_.measure_cpu) state.cpu_ns += ThreadCpuNanos() - start_ns;
  for (;;) {
    const int64_t decision_ns = options_.measure_cpu ? ThreadCpuNanos() : 0;
    negotiator.Plan();
    outgoing = negotiator.TakeOutgoing();
    const std::optional<Decision> decision = negotiator.NextDecision();
    if (options_.measure_cpu) state.cpu_ns += ThreadCpuNanos() - decision_ns;
    Send(rank, std::move(outgoing));
    if (!decision.has_value()) break;
    Execute(rank, *decision);
  }
  SetTimer(rank);
}

void LifeWorld::Send(int rank, std::vector<Negotiator::Outgoing> outgoing) {
  LifeRank& state = ranks_[rank];
  int64_t now_ns = now_ns_;
  for (const Negotiator::Outgoing& message : outgoing) {
    const int64_t start_ns = options_.measure_cpu ? ThreadCpuNanos() : 0;
    auto bytes = std::make_shared<const std::string>(
        message.message.SerializeAsString());
    if (options_.measure_cpu) state.cpu_ns += ThreadCpuNanos() - start_ns;
    const auto size = static_cast<int64_t>(bytes->size());
    ++state.messages;
    state.bytes += size;
    ++phases_.back().messages;
    const Network::Departure departure =
        network_.Send(rank, message.to, size, now_ns);
    now_ns = departure.sent_ns;
    ++in_flight_;
    events_.push({departure.arrival_ns, sequence_++, LifeEvent::Kind::kArrival,
                  message.to, rank, std::move(bytes)});
  }
}

void LifeWorld::Execute(int rank, const Decision& decision) {
  LifeRank& state = ranks_[rank];
  switch (decision.kind) {
    case Decision::Kind::kBatch:
      for (const Decision::Tensor& tensor : decision.tensors) {
        state.pending[*tensor.token] = false;
        if (--state.left == 0) --unfinished_;
      }
      state.negotiator->OnDone();
      WaitForLast(rank);
      break;
    case Decision::Kind::kDeparture:
      break;
    case Decision::Kind::kShutdown:
      ++shut_down_;
      break;
    default:
      status_ = absl::InternalError(absl::StrCat(
          "rank ", rank, ": an unexpected decision: ", decision.message));
  }
}

void LifeWorld::WaitForLast(int rank) {
  LifeRank& state = ranks_[rank];
  if (state.left == 0) return;
  const auto last =
      std::find(state.pending.rbegin(), state.pending.rend(), true);
  const auto index = state.pending.rend() - last - 1;
  state.negotiator->MarkUrgent((*requests_)[index].name);
}

void LifeWorld::SetTimer(int rank) {
  LifeRank& state = ranks_[rank];
  const int64_t deadline_ns = state.negotiator->next_deadline_ns().value_or(-1);
  if (deadline_ns == state.timer_ns) return;
  state.timer_ns = deadline_ns;
  if (deadline_ns < 0) return;
  events_.push({std::max(deadline_ns, now_ns_), sequence_++,
                LifeEvent::Kind::kTimer, rank, rank, nullptr});
}

void LifeWorld::Submit(const Requests& requests, int first_rank, int end_rank) {
  requests_ = &requests;
  for (int rank = first_rank; rank < end_rank; ++rank) {
    LifeRank& state = ranks_[rank];
    state.pending.assign(requests.size(), true);
    state.left = static_cast<int>(requests.size());
    ++unfinished_;
    Act(rank, [&](Negotiator& negotiator) {
      for (size_t i = 0; i < requests.size(); ++i) {
        negotiator.Submit(requests[i], /*absent=*/false, i);
      }
      WaitForLast(rank);
    });
  }
}

void LifeWorld::RunUntil(const std::function<bool()>& done) {
  while (status_.ok() && !done()) {
    if (events_.empty()) {
      status_ = absl::InternalError(
          absl::StrCat(phases_.back().phase, ": nothing moves"));
      return;
    }
    LifeEvent event = events_.top();
    events_.pop();
    LifeRank& state = ranks_[event.rank];
    if (event.kind == LifeEvent::Kind::kTimer &&
        event.time_ns < state.timer_ns) {
      continue;  // it was put off
    }
    now_ns_ = std::max(now_ns_, event.time_ns);
    switch (event.kind) {
      case LifeEvent::Kind::kArrival:
        event.time_ns = network_.Receive(
            event.from, event.rank, static_cast<int64_t>(event.bytes->size()),
            now_ns_);
        event.kind = LifeEvent::Kind::kReceived;
        events_.push(std::move(event));
        break;
      case LifeEvent::Kind::kReceived:
        --in_flight_;
        ++state.messages;
        state.bytes += static_cast<int64_t>(event.bytes->size());
        Act(event.rank, [&](Negotiator& negotiator) {
          negotiation::wire::Message message;
          if (!message.ParseFromString(*event.bytes)) {
            status_ = absl::InternalError("a message that cannot be read");
          }
          status_.Update(negotiator.OnMessage(event.from, message));
        });
        break;
      case LifeEvent::Kind::kTimer:
        if (state.timer_ns < 0) break;
        state.timer_ns = -1;
        Act(event.rank, [](Negotiator&) {});
        break;
    }
  }
}

void LifeWorld::RunToWarning() {
  RunUntil([this] { return !phases_.back().warnings.empty(); });
  // The first look, and all that the other ranks report at that time, but not
  // the next look.
  const int64_t end_ns = now_ns_ + absl::ToInt64Nanoseconds(kStallWarning / 2);
  events_.push({end_ns, sequence_++, LifeEvent::Kind::kTimer, 0, 0, nullptr});
  RunUntil([&] { return now_ns_ >= end_ns && in_flight_ == 0; });
}

void LifeWorld::BeginPhase(const std::string& phase) {
  if (options_.on_phase) options_.on_phase();
  phases_.emplace_back().phase = phase;
  phase_begin_ns_ = now_ns_;
  for (LifeRank& rank : ranks_) rank.messages = rank.bytes = rank.cpu_ns = 0;
}

void LifeWorld::EndPhase() {
  PhaseLoad& load = phases_.back();
  load.virtual_ms = static_cast<double>(now_ns_ - phase_begin_ns_) / 1e6;
  int64_t max_cpu_ns = 0;
  for (const LifeRank& rank : ranks_) {
    load.max_messages = std::max(load.max_messages, rank.messages);
    load.max_bytes = std::max(load.max_bytes, rank.bytes);
    max_cpu_ns = std::max(max_cpu_ns, rank.cpu_ns);
  }
  load.root_messages = ranks_[0].messages;
  load.root_bytes = ranks_[0].bytes;
  load.max_cpu_ms = static_cast<double>(max_cpu_ns) / 1e6;
}

absl::StatusOr<std::vector<PhaseLoad>> LifeWorld::Run() {
  const Workload training = Training(options_.tensors);
  Requests stalled;
  for (int i = 0; i < options_.stalled_tensors; ++i) {
    stalled.emplace_back().name = absl::StrCat("stalled.layer", i, ".weight");
    stalled.back().tensors = {{.shape = {1024}}};
  }
  const int ranks = options_.ranks;
  const auto step = [&] {
    Submit(training.requests, 0, ranks);
    RunToTheEnd();
  };

  BeginPhase("announcing");
  step();
  step();
  EndPhase();
  BeginPhase("steady");
  step();
  EndPhase();
  if (ranks > 1) {
    BeginPhase("one late");
    Submit(stalled, 0, last());
    RunToWarning();
    EndPhase();
    BeginPhase("(the late one comes)");
    Submit(stalled, last(), ranks);
    RunToTheEnd();
    phases_.pop_back();
    BeginPhase("one early");
    Submit(stalled, last(), ranks);
    RunToWarning();
    EndPhase();
    BeginPhase("(the others come)");
    Submit(stalled, 0, last());
    RunToTheEnd();
    phases_.pop_back();
  }
  const auto leave = [](Negotiator& negotiator) {
    negotiator.Leave("the end");
  };
  if (ranks > 1) {
    BeginPhase("late to leave");
    for (int rank = 0; rank < last(); ++rank) Act(rank, leave);
    RunToWarning();
    EndPhase();
  }
  BeginPhase("shutdown");
  Act(last(), leave);
  RunUntil([&] { return shut_down_ == ranks; });
  EndPhase();
  HVDLITE_RETURN_IF_ERROR(status_);
  return std::move(phases_);
}

}  // namespace

int PhasesOfLife(int ranks) { return ranks > 1 ? 8 : 3; }

absl::StatusOr<std::vector<PhaseLoad>> SimulateLife(
    const LifeOptions& options) {
  return LifeWorld(options).Run();
}

}  // namespace hvdlite::scale_sim
