// LockstepWorld: many Negotiators in one thread, stepped in a seeded order.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/negotiator.h"

namespace hvdlite::testing {

// Messages travel as bytes, in order on each link; which link delivers next is
// up to the test or the seed. Time stands still unless advanced.
class LockstepWorld {
 public:
  using Decision = negotiation::Decision;

  LockstepWorld(int size, negotiation::Negotiator::Options options,
                int ranks_per_host = 1)
      : decisions_(size), names_(size) {
    std::vector<int> hosts;
    std::vector<std::string> names;
    for (int rank = 0; rank < size; ++rank) {
      hosts.push_back(rank / ranks_per_host);
      names.push_back(absl::StrCat("host", hosts.back()));
    }
    options.layout = std::make_shared<negotiation::WorldLayout>(hosts, names);
    for (int rank = 0; rank < size; ++rank) {
      options.rank = rank;
      options.at_gate = [this, rank](const Decision& decision) {
        if (rank == 0 && root_is_busy_) return std::optional<uint32_t>();
        return at_gate ? at_gate(rank, decision) : std::optional<uint32_t>(0);
      };
      ranks_.push_back(std::make_unique<negotiation::Negotiator>(options));
      ranks_.back()->Advance(now_ns_);
    }
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  negotiation::Negotiator& operator[](int rank) { return *ranks_[rank]; }

  void Submit(int rank, const negotiation::Request& request,
              bool absent = false, uint32_t step = 0) {
    const negotiation::Token token = next_token_++;
    names_[rank][token] = request.name;
    pending_[rank].insert(request.name);
    ranks_[rank]->Submit(request, absent, token, /*hint=*/nullptr,
                         /*submitted_ns=*/std::nullopt, step);
    Collect(rank);
  }

  void SubmitEverywhere(const negotiation::Request& request) {
    for (int rank = 0; rank < size(); ++rank) Submit(rank, request);
  }

  void MarkUrgent(int rank, const std::string& name) {
    ranks_[rank]->MarkUrgent(name);
    Collect(rank);
  }

  void Release(int rank, const std::string& name) {
    ranks_[rank]->Release(name);
    Collect(rank);
  }

  void Leave(int rank, const std::string& reason) {
    ranks_[rank]->Leave(reason);
    Collect(rank);
  }

  bool IsPending(int rank, const std::string& name) const {
    const auto found = pending_.find(rank);
    return found != pending_.end() && found->second.contains(name);
  }

  // Delivers one message of a random link, or executes one decision of a
  // random rank; false if there is nothing to do.
  bool Step(std::mt19937& random) {
    std::vector<std::pair<int, int>> links = BusyLinks();
    // A rank may have a decision to execute: try them in random order, as
    // often as messages.
    const size_t choice = random() % (links.size() + 1);
    if (choice < links.size()) {
      Deliver(links[choice]);
      return true;
    }
    const int first = static_cast<int>(random() % ranks_.size());
    for (int i = 0; i < size(); ++i) {
      if (Execute((first + i) % size())) return true;
    }
    links = BusyLinks();  // the root may have decided for others
    if (links.empty()) return false;
    Deliver(links[random() % links.size()]);
    return true;
  }

  // Until nothing moves.
  void Settle(std::mt19937& random) {
    for (int steps = 0; Step(random); ++steps) {
      ASSERT_LT(steps, 10'000'000) << "the protocol does not come to rest";
    }
  }
  void Settle() {
    std::mt19937 random(1);
    Settle(random);
  }

  // Delivers all messages, but carries nothing out.
  void DeliverAll() {
    while (!BusyLinks().empty()) Deliver(BusyLinks().front());
  }

  // All ranks come to the gates of what is decided, and this one begins what is
  // behind it, without an end; false if it cannot.
  bool Begin(int rank) {
    for (int round = 0; round < 4; ++round) {
      for (int other = 0; other < size(); ++other) {
        ranks_[other]->Plan();
        Collect(other);
      }
      DeliverAll();
    }
    return ranks_[rank]->NextDecision().has_value();
  }

  // As Settle, but the root only plans: it is inside a batch.
  void SettleWhileRootIsBusy() {
    root_is_busy_ = true;
    for (bool moved = true; moved;) {
      DeliverAll();
      ranks_[0]->Plan();
      Collect(0);
      DeliverAll();
      moved = false;
      for (int rank = 1; rank < size(); ++rank) moved |= Execute(rank);
    }
    root_is_busy_ = false;
  }

  void Advance(absl::Duration by) {
    now_ns_ += absl::ToInt64Nanoseconds(by);
    for (int rank = 0; rank < size(); ++rank) {
      if (stopped_.contains(rank)) continue;
      ranks_[rank]->Advance(now_ns_);
      Collect(rank);
    }
  }

  // In steps, in which looks and answers may come.
  void AdvanceBySteps(absl::Duration by, absl::Duration step) {
    for (absl::Duration done; done < by; done += step) {
      Advance(step);
      Settle();
    }
  }

  // This rank neither receives nor acts any more.
  void Stop(int rank) { stopped_.insert(rank); }
  void Resume(int rank) { stopped_.erase(rank); }

  // What a rank has executed, in order. Batches list names.
  struct Done {
    Decision::Kind kind;
    uint64_t number;
    std::vector<std::string> tensors;
    std::vector<std::string> absent;
    std::string message;
    int participants = 0;
    int last_joined = 0;
    std::vector<int> last_ranks = {};       // of each tensor
    std::vector<int64_t> lateness_us = {};  // the same
    uint32_t next_step = 0;
    friend bool operator==(const Done&, const Done&) = default;
  };
  const std::vector<Done>& done(int rank) const { return decisions_[rank]; }

  // Every rank asks for the set, and everything settles; its id.
  negotiation::ProcessSetId AddProcessSet(std::vector<int> members) {
    negotiation::Request request;
    request.name = absl::StrCat("add.", process_sets_.size());
    request.collective = negotiation::Collective::kAddProcessSet;
    request.members = std::move(members);
    SubmitEverywhere(request);
    Settle();
    return process_sets_.back();
  }

  void Join(int rank) {
    negotiation::Request request;
    request.name = "join";
    request.collective = negotiation::Collective::kJoin;
    Submit(rank, request);
  }

  // As Negotiator::Options::at_gate.
  std::function<std::optional<uint32_t>(int rank, const Decision& decision)>
      at_gate;

  // What a rank says of itself; nullopt: nothing, for now. And what can be seen
  // of it from outside.
  std::function<std::optional<negotiation::Explanation>(int rank)> explain;
  std::function<std::optional<negotiation::ProcessSample>(int rank)> look_at;

  int64_t now_ns() const { return now_ns_; }

  std::vector<std::string> warnings;  // of all ranks
  int64_t bytes_sent = 0;
  std::function<void(const std::string& bytes)> on_send;

 private:
  // With messages that can be delivered.
  std::vector<std::pair<int, int>> BusyLinks() const {
    std::vector<std::pair<int, int>> links;
    for (const auto& [link, queue] : links_) {
      if (!queue.empty() && !stopped_.contains(link.second)) {
        links.push_back(link);
      }
    }
    return links;
  }

  void Explain(int rank) {
    ranks_[rank]->Explain(
        [&]() -> std::optional<negotiation::Explanation> {
          if (!explain) return std::nullopt;
          return explain(rank);
        },
        [&](int other) -> std::optional<negotiation::ProcessSample> {
          if (!look_at) return std::nullopt;
          return look_at(other);
        });
  }

  void Collect(int rank) {
    Explain(rank);
    for (auto& outgoing : ranks_[rank]->TakeOutgoing()) {
      std::string bytes = outgoing.message.SerializeAsString();
      bytes_sent += static_cast<int64_t>(bytes.size());
      if (on_send) on_send(bytes);
      links_[{rank, outgoing.to}].push_back(std::move(bytes));
    }
    for (std::string& warning : ranks_[rank]->TakeWarnings()) {
      warnings.push_back(std::move(warning));
    }
  }

  void Deliver(std::pair<int, int> link) {
    std::deque<std::string>& queue = links_[link];
    negotiation::wire::Message message;
    ASSERT_TRUE(message.ParseFromString(queue.front()));
    queue.pop_front();
    const absl::Status status =
        ranks_[link.second]->OnMessage(link.first, message);
    ASSERT_TRUE(status.ok()) << status;
    Collect(link.second);
  }

  bool Execute(int rank) {
    if (stopped_.contains(rank)) return false;
    ranks_[rank]->Plan();
    Collect(rank);
    std::optional<Decision> decision = ranks_[rank]->NextDecision();
    if (!decision.has_value()) return false;
    Done done{.kind = decision->kind,
              .number = decision->number,
              .tensors = {},
              .absent = {},
              .message = decision->message};
    const auto take = [&](negotiation::Token token) {
      const std::string name = names_[rank].at(token);
      names_[rank].erase(token);
      EXPECT_EQ(pending_[rank].erase(name), 1u)
          << name << " ended twice on rank " << rank;
      return name;
    };
    for (const auto& tensor : decision->tensors) {
      done.last_ranks.push_back(tensor.last_rank);
      done.lateness_us.push_back(tensor.lateness_us);
      // A rank that has joined takes part without an operation of its own.
      done.tensors.push_back(tensor.token.has_value()
                                 ? take(*tensor.token)
                                 : "(" + tensor.request->name + ")");
    }
    for (const auto token : decision->absent) {
      done.absent.push_back(take(token));
    }
    for (const auto token : decision->failed) {
      done.tensors.push_back(take(token));
    }
    if (decision->token.has_value()) {
      done.tensors.push_back(take(*decision->token));
    }
    if (decision->kind == Decision::Kind::kAddProcessSet) {
      process_sets_.push_back(decision->process_set);
    }
    done.participants = decision->participants;
    done.last_joined = decision->last_joined;
    done.next_step = decision->next_step;
    decisions_[rank].push_back(std::move(done));
    if (decision->has_gate) ranks_[rank]->OnDone();
    return true;
  }

  std::vector<std::unique_ptr<negotiation::Negotiator>> ranks_;
  std::map<std::pair<int, int>, std::deque<std::string>> links_;
  std::vector<std::vector<Done>> decisions_;
  std::vector<std::map<negotiation::Token, std::string>> names_;
  std::map<int, std::set<std::string>> pending_;
  std::set<int> stopped_;
  bool root_is_busy_ = false;
  std::vector<negotiation::ProcessSetId> process_sets_;  // as ranks added them
  negotiation::Token next_token_ = 1;
  int64_t now_ns_ = 1'000'000'000;
};

}  // namespace hvdlite::testing
