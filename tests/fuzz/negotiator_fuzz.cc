// Worlds of real Negotiators, whose messages are delivered in any order,
// changed on the way, or made up as a peer would that is broken or of another
// version. Each of them carries on or ends its world with a reason; none
// crashes, and no operation of any rank ends twice.
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "negotiation/protocol/negotiator.h"
#include "tests/fuzz/fuzz_input.h"

namespace hvdlite::fuzz {
namespace {

using negotiation::Collective;
using negotiation::Decision;
using negotiation::Negotiator;
using negotiation::NumberField;
using negotiation::Request;
using negotiation::Token;
namespace wire = negotiation::wire;

std::string AnyName(FuzzInput& input) {
  const int choice = input.Below(20);
  if (choice < 16) return absl::StrCat("t", choice % 6);
  if (choice == 16) return std::string(negotiation::kJoinName);
  if (choice == 17) return std::string(negotiation::kShutdownName);
  return std::string(input.Bytes(choice == 18 ? 3 : 300));
}

// ---- Messages that no rank of this version would send.

void FillRequest(FuzzInput& input, wire::Request* request) {
  request->set_name(AnyName(input));
  request->set_process_set(input.Bool() ? 0 : input.Number());
  request->set_collective(input.Below(12));
  for (int left = input.Below(3); left > 0; --left) {
    wire::Tensor* const tensor = request->add_tensors();
    tensor->set_dtype(input.Number());
    for (int dimensions = input.Below(5); dimensions > 0; --dimensions) {
      tensor->add_shape(static_cast<int64_t>(input.Number()));
    }
    if (input.Bool()) tensor->add_strides(static_cast<int64_t>(input.Number()));
  }
  request->set_op(input.Below(6));
  request->set_average(input.Bool());
  request->set_compression(input.Below(4));
  request->set_prescale_factor(static_cast<double>(input.Number()));
  request->set_root_rank(static_cast<int32_t>(input.Number()));
  for (int left = input.Below(4); left > 0; --left) {
    request->add_members(static_cast<int32_t>(input.Number()));
  }
  request->set_removed(input.Number());
  if (input.Below(5) == 0) request->set_local_error("no memory");
}

void FillNumbers(FuzzInput& input, NumberField* field) {
  for (int left = input.Below(6); left > 0; --left) field->Add(input.Number());
}

void FillRanks(FuzzInput& input, wire::Ranks* ranks) {
  for (int left = input.Below(6); left > 0; --left) {
    ranks->add_runs(static_cast<uint32_t>(input.Number()));
  }
  ranks->set_unnamed(static_cast<uint32_t>(input.Number()));
}

void FillReady(FuzzInput& input, wire::Ready* ready) {
  FillNumbers(input, ready->mutable_ids());
  FillNumbers(input, ready->mutable_last_ranks());
  FillNumbers(input, ready->mutable_ages());
  if (input.Bool()) FillNumbers(input, ready->mutable_steps());
}

void FillReport(FuzzInput& input, wire::Report* report) {
  if (input.Bool()) FillReady(input, report->mutable_ready());
  if (input.Below(4) == 0) FillReady(input, report->mutable_absent());
  for (int left = input.Below(4); left > 0; --left) {
    wire::Announcement* const announced = report->add_announced();
    FillRequest(input, announced->mutable_request());
    if (input.Bool()) FillRanks(input, announced->mutable_ranks());
    announced->set_absent(input.Bool());
    announced->set_last_rank(static_cast<int32_t>(input.Number()));
    announced->set_age(static_cast<uint32_t>(input.Number()));
    announced->set_step(static_cast<uint32_t>(input.Number()));
  }
  if (input.Below(4) == 0) FillNumbers(input, report->mutable_urgent_ids());
  if (input.Below(4) == 0) report->add_urgent_names(AnyName(input));
  if (input.Below(8) == 0) {
    report->mutable_departure()->set_rank(static_cast<int32_t>(input.Number()));
    report->mutable_departure()->set_reason(AnyName(input));
  }
  report->set_all_left(input.Below(8) == 0);
  for (int left = input.Below(8) - 5; left > 0; --left) {
    wire::Stall* const stall = report->add_stalls();
    stall->set_name(AnyName(input));
    stall->set_waiting_ms(input.Number());
    stall->set_fatal(input.Below(8) == 0);
    stall->set_process_set(static_cast<uint32_t>(input.Number()));
  }
  if (input.Below(4) == 0) {
    wire::Answer* const answer = report->mutable_answer();
    answer->set_probe(input.Number());
    for (int left = input.Below(3); left > 0; --left) {
      wire::StallAnswer* const stall = answer->add_stalls();
      FillRanks(input, stall->mutable_missing());
      FillRanks(input, stall->mutable_silent());
      stall->set_pending(input.Bool());
      wire::RankState* const state = answer->add_states();
      state->set_rank(static_cast<int32_t>(input.Number()));
      state->set_last_name(AnyName(input));
      state->set_since_ms(input.Number());
      answer->add_silent(static_cast<uint32_t>(input.Number()));
    }
    answer->set_overdue(static_cast<uint32_t>(input.Number()));
  }
  switch (input.Below(16)) {
    case 0:
      report->set_broken(AnyName(input));
      break;
    case 14:
      report->set_forgotten(input.Number());
      break;
    case 15:
      FillNumbers(input, report->mutable_released_ids());
      break;
    default:
      break;
  }
  for (int left = input.Below(8) - 5; left > 0; --left) {
    report->add_joined(static_cast<int32_t>(input.Number()));
  }
  report->set_waits_after(input.Number());
}

void FillRegistration(FuzzInput& input, wire::Registration* registration) {
  registration->set_id(static_cast<uint32_t>(input.Number()));
  FillRequest(input, registration->mutable_request());
}

void FillDecision(FuzzInput& input, uint64_t number, wire::Decision* decision) {
  decision->set_number(input.Below(8) == 0 ? input.Number() : number);
  switch (input.Below(12)) {
    case 0:
      decision->mutable_failure()->set_name(AnyName(input));
      decision->mutable_failure()->set_message(AnyName(input));
      decision->mutable_failure()->set_next_step(
          static_cast<uint32_t>(input.Number()));
      break;
    case 1:
      decision->mutable_departure()->set_rank(
          static_cast<int32_t>(input.Number()));
      break;
    case 2:
      decision->set_broken(AnyName(input));
      break;
    case 3:
      if (input.Bool()) {
        decision->set_shutdown(true);
      } else {
        FillNumbers(input, decision->mutable_forgotten()->mutable_ids());
      }
      break;
    case 4:
    case 5:
      decision->mutable_added()->set_name(AnyName(input));
      decision->mutable_added()->set_process_set(
          static_cast<uint32_t>(input.Number()));
      for (int left = input.Below(4); left > 0; --left) {
        decision->mutable_added()->add_members(
            static_cast<int32_t>(input.Number()));
      }
      break;
    case 6:
      decision->mutable_removed()->set_name(AnyName(input));
      decision->mutable_removed()->set_process_set(
          static_cast<uint32_t>(input.Number()));
      break;
    case 7:
      decision->set_all_joined(static_cast<int32_t>(input.Number()));
      break;
    default: {
      wire::Batch* const batch = decision->mutable_batch();
      if (input.Bool()) FillNumbers(input, batch->mutable_ids());
      for (int left = input.Below(3); left > 0; --left) {
        FillRegistration(input, batch->add_registered());
      }
      for (int left = input.Below(3); left > 0; --left) {
        batch->add_names(AnyName(input));
      }
      if (input.Bool()) FillNumbers(input, batch->mutable_absent_ids());
      if (input.Bool()) batch->add_absent_names(AnyName(input));
      FillNumbers(input, batch->mutable_last_ranks());
      FillNumbers(input, batch->mutable_lateness_us());
      const int more = input.Below(4);
      if (more == 0) FillRegistration(input, batch->add_absent_registered());
      if (more == 3) FillRequest(input, batch->add_requests());
      batch->set_process_set(
          input.Bool() ? 0 : static_cast<uint32_t>(input.Number()));
      batch->set_joined(static_cast<uint32_t>(input.Number()));
      break;
    }
  }
}

void FillMessage(FuzzInput& input, uint64_t next_decision,
                 wire::Message* message) {
  if (input.Bool()) {
    FillReport(input, message->mutable_report());
  } else {
    wire::Directive* const directive = message->mutable_directive();
    for (int left = input.Below(3); left > 0; --left) {
      FillDecision(input, next_decision++, directive->add_decisions());
    }
    if (input.Below(4) == 0) {
      directive->mutable_probe()->set_number(input.Number());
      for (int left = input.Below(4); left > 0; --left) {
        directive->mutable_probe()->add_names(AnyName(input));
        if (input.Bool()) {
          directive->mutable_probe()->add_process_sets(
              static_cast<uint32_t>(input.Number()));
        }
      }
    }
    directive->set_awaits_reports(input.Bool());
  }
  message->set_ping(input.Bool());
  message->set_pong(input.Bool());
  if (input.Below(4) == 0) FillNumbers(input, message->mutable_gates());
}

// ---- A world.

class World {
 public:
  explicit World(FuzzInput& input) : input_(input) {
    const int size = input.Below(7) + 1;
    const int ranks_per_host = input.Below(3) + 1;
    Negotiator::Options options;
    options.tree_arity = input.Below(3) + 1;
    options.min_batch_bytes = input.Bool() ? 1 : 4096;
    options.fusion_threshold_bytes = 8192;
    options.max_idle_uses = 3;
    options.stall_warning = absl::Seconds(2);
    options.stall_failure = absl::Seconds(input.Bool() ? 5 : 1000);
    std::vector<int> hosts;
    std::vector<std::string> names;
    for (int rank = 0; rank < size; ++rank) {
      hosts.push_back(rank / ranks_per_host);
      names.push_back(absl::StrCat("host", hosts.back()));
    }
    options.layout = std::make_shared<negotiation::WorldLayout>(hosts, names);
    for (int rank = 0; rank < size; ++rank) {
      options.rank = rank;
      ranks_.emplace_back().negotiator = std::make_unique<Negotiator>(options);
      ranks_.back().negotiator->Advance(now_ns_);
      neighbours_.push_back(
          negotiation::PlaceInTree(rank, options.tree_arity, *options.layout));
    }
  }

  void Run() {
    for (int steps = 0; !input_.empty() && steps < 2000; ++steps) Step();
    for (int steps = 0; steps < 200; ++steps) {
      for (int rank = 0; rank < size(); ++rank) CarryOut(rank);
      DeliverAll();
    }
    for (int seconds = 0; seconds < 20; ++seconds) {
      Advance(absl::Seconds(1));
      DeliverAll();
    }
  }

 private:
  struct Rank {
    std::unique_ptr<Negotiator> negotiator;
    std::map<Token, std::string> pending;
    std::set<std::string> names;
    uint64_t last_decision = 0;
  };

  int size() const { return static_cast<int>(ranks_.size()); }

  void Step() {
    const int rank = input_.Below(size());
    switch (input_.Below(12)) {
      case 0:
      case 1:
        Submit(rank);
        break;
      case 2: {  // the same on all
        Request request = AnyRequest();
        for (int each = 0; each < size(); ++each) SubmitOne(each, request, 0);
        break;
      }
      case 3:
        CarryOut(rank);
        break;
      case 4:
        for (int each = 0; each < size(); ++each) CarryOut(each);
        DeliverAll();
        break;
      case 5:
        Advance(absl::Milliseconds(int64_t{50} << input_.Below(8)));
        break;
      case 6:
        ranks_[rank].negotiator->MarkUrgent(AnyName(input_));
        Collect(rank);
        break;
      case 7:
        EndOf(rank);
        break;
      case 8: {  // changed on the way
        std::deque<std::string>* const link = BusyLink();
        if (link == nullptr) break;
        std::string& bytes = link->front();
        for (int left = input_.Below(3) + 1; left > 0 && !bytes.empty();
             --left) {
          bytes[input_.Number() % bytes.size()] =
              static_cast<char>(input_.Byte());
        }
        break;
      }
      case 9: {  // told twice, or to somebody else
        std::deque<std::string>* const link = BusyLink();
        if (link == nullptr) break;
        Deliver(input_.Below(size()), rank, link->front());
        break;
      }
      default: {
        wire::Message message;
        FillMessage(input_, ranks_[rank].last_decision + 1, &message);
        Deliver(AnyNeighbour(rank), rank, message.SerializeAsString());
        break;
      }
    }
  }

  // Or any other rank.
  int AnyNeighbour(int rank) {
    const negotiation::TreePosition& tree = neighbours_[rank];
    const int children = static_cast<int>(tree.children.size());
    const int choice = input_.Below(children + 2);
    if (choice < children) return tree.children[choice].rank;
    return choice == children && tree.parent >= 0 ? tree.parent
                                                  : input_.Below(size());
  }

  Request AnyRequest() {
    Request request;
    request.name = absl::StrCat("t", input_.Below(6));
    const int kind = input_.Below(16);
    request.collective = kind < negotiation::kNumCollectives
                             ? static_cast<Collective>(kind)
                             : Collective::kAllreduce;
    if (request.collective == Collective::kJoin) return request;
    if (request.traits().memory != negotiation::MemoryRule::kNone) {
      request.tensors = {{.shape = {input_.Below(4) * 300, 2}}};
    }
    if (request.rows_differ()) {
      request.tensors[0].shape[0] = negotiation::kAnyLength;
    }
    if (request.collective == Collective::kAddProcessSet) {
      for (int rank = 0; rank < size(); ++rank) {
        if (input_.Bool()) request.members.push_back(rank);
      }
    }
    request.removed = input_.Below(3);
    if (input_.Below(4) == 0) request.process_set = input_.Below(3);
    return request;
  }

  void Submit(int rank) {
    const Request request = AnyRequest();
    SubmitOne(rank, request, static_cast<uint32_t>(input_.Below(3)));
  }

  void SubmitOne(int rank, const Request& request, uint32_t step) {
    Rank& at = ranks_[rank];
    // As its caller promises.
    const std::string name = request.collective == Collective::kJoin
                                 ? std::string(negotiation::kJoinName)
                                 : request.name;
    if (at.names.contains(name) ||
        at.names.contains(std::string(negotiation::kJoinName))) {
      return;
    }
    const Token token = next_token_++;
    at.pending[token] = name;
    at.names.insert(name);
    at.negotiator->Submit(request, input_.Below(8) == 0, token, nullptr,
                          std::nullopt, step);
    Collect(rank);
  }

  void EndOf(int rank) {
    const int choice = input_.Below(20);
    if (choice < 3) ranks_[rank].negotiator->Leave("it has seen enough");
    if (choice == 3) ranks_[rank].negotiator->Abort("it is tired");
    if (choice > 9) ranks_[rank].negotiator->Release(AnyName(input_));
    Collect(rank);
  }

  void Advance(absl::Duration by) {
    now_ns_ += absl::ToInt64Nanoseconds(by);
    for (int rank = 0; rank < size(); ++rank) {
      ranks_[rank].negotiator->Advance(now_ns_);
      ranks_[rank].negotiator->next_deadline_ns();
      Collect(rank);
    }
  }

  void Collect(int rank) {
    for (auto& outgoing : ranks_[rank].negotiator->TakeOutgoing()) {
      FUZZ_CHECK(outgoing.to >= 0 && outgoing.to < size());
      links_[{rank, outgoing.to}].push_back(
          outgoing.message.SerializeAsString());
    }
    ranks_[rank].negotiator->TakeWarnings();
  }

  std::deque<std::string>* BusyLink() {
    std::vector<std::deque<std::string>*> busy;
    for (auto& [link, queue] : links_) {
      if (!queue.empty()) busy.push_back(&queue);
    }
    return busy.empty() ? nullptr : busy[input_.Number() % busy.size()];
  }

  void DeliverAll() {
    for (int rounds = 0; rounds < 50; ++rounds) {
      bool any = false;
      for (auto& [link, queue] : links_) {
        if (queue.empty()) continue;
        const std::string bytes = std::move(queue.front());
        queue.pop_front();
        Deliver(link.first, link.second, bytes);
        any = true;
      }
      if (!any) return;
    }
  }

  // As Progress does.
  void Deliver(int from, int to, const std::string& bytes) {
    wire::Message message;
    Negotiator& negotiator = *ranks_[to].negotiator;
    if (!message.ParseFromString(bytes)) {
      negotiator.Abort("unreadable message");
    } else if (const absl::Status status = negotiator.OnMessage(from, message);
               !status.ok()) {
      FUZZ_CHECK(!status.message().empty());
      negotiator.Abort(std::string(status.message()));
    } else if (message.has_directive() &&
               message.directive().decisions_size() > 0) {
      ranks_[to].last_decision =
          message.directive()
              .decisions(message.directive().decisions_size() - 1)
              .number();
    }
    Collect(to);
  }

  void CarryOut(int rank) {
    Negotiator& negotiator = *ranks_[rank].negotiator;
    negotiator.Plan();
    Collect(rank);
    const std::optional<Decision> decision = negotiator.NextDecision();
    if (!decision.has_value()) return;
    ranks_[rank].last_decision = decision->number;
    for (const Decision::Tensor& tensor : decision->tensors) {
      if (tensor.token.has_value()) {
        EndToken(rank, *tensor.token);
      } else {
        FUZZ_CHECK(tensor.request != nullptr);
      }
    }
    for (const Token token : decision->absent) EndToken(rank, token);
    for (const Token token : decision->failed) EndToken(rank, token);
    if (decision->token.has_value()) EndToken(rank, *decision->token);
    for (const int member : decision->members) {
      FUZZ_CHECK(member >= 0 && member < size());
    }
    if (decision->kind == Decision::Kind::kBroken ||
        decision->kind == Decision::Kind::kDeparture) {
      FUZZ_CHECK(!decision->message.empty());
      ranks_[rank].pending.clear();
      ranks_[rank].names.clear();
    }
    if (decision->has_gate) negotiator.OnDone();
  }

  void EndToken(int rank, Token token) {
    Rank& at = ranks_[rank];
    const auto found = at.pending.find(token);
    FUZZ_CHECK(found != at.pending.end());
    at.names.erase(found->second);
    at.pending.erase(found);
  }

  FuzzInput& input_;
  std::vector<Rank> ranks_;
  std::vector<negotiation::TreePosition> neighbours_;
  std::map<std::pair<int, int>, std::deque<std::string>> links_;
  Token next_token_ = 1;
  int64_t now_ns_ = 1'000'000'000;
};

}  // namespace
}  // namespace hvdlite::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvdlite::fuzz::FuzzInput input(data, size);
  hvdlite::fuzz::World(input).Run();
  return 0;
}
