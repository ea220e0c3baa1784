#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "negotiation/protocol/negotiator.h"
#include "tools/negotiation_bench/measurement.h"
#include "tools/support/statistics.h"

namespace hvdlite::negotiation_bench {
namespace {

using negotiation::Negotiator;

class Ranks {
 public:
  explicit Ranks(const Options& options) {
    Negotiator::Options shared;
    shared.layout = std::make_shared<negotiation::WorldLayout>(
        std::vector<int>(options.ranks, 0));
    for (int rank = 0; rank < options.ranks; ++rank) {
      shared.rank = rank;
      ranks_.push_back(std::make_unique<Negotiator>(shared));
    }
    for (int i = 0; i < options.tensors; ++i) {
      negotiation::Request& request = requests_.emplace_back();
      request.name = absl::StrCat("layer", i, ".weight");
      request.tensors = {{.shape = {options.tensor_bytes / 4}}};
    }
    hints_.resize(options.ranks * options.tensors);
  }

  void SubmitAll() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank]->Advance(++now_ns_);
      for (size_t i = 0; i < requests_.size(); ++i) {
        ranks_[rank]->Submit(requests_[i], /*absent=*/false, i,
                             &hints_[rank * requests_.size() + i]);
      }
      ranks_[rank]->MarkUrgent(requests_.back().name);
    }
  }

  // Until every rank has ended everything.
  void Finish() {
    size_t left = ranks_.size() * requests_.size();
    while (left > 0) {
      for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank]->Plan();
        ranks_[rank]->ComeToGate();
        const auto decision = ranks_[rank]->NextDecision();
        for (const Negotiator::Outgoing& outgoing :
             ranks_[rank]->TakeOutgoing()) {
          negotiation::wire::Message message;
          message.ParseFromString(outgoing.message.SerializeAsString());
          ranks_[outgoing.to]
              ->OnMessage(static_cast<int>(rank), message)
              .IgnoreError();
        }
        if (!decision.has_value()) continue;
        left -= decision->tensors.size();
        if (decision->has_gate) ranks_[rank]->OnDone();
      }
    }
  }

 private:
  int64_t now_ns_ = 0;
  std::vector<std::unique_ptr<Negotiator>> ranks_;
  std::vector<negotiation::Request> requests_;
  std::vector<negotiation::SlotHint> hints_;
};

}  // namespace

Result MeasureNegotiators(const Options& options) {
  using Clock = std::chrono::steady_clock;
  Ranks ranks(options);
  std::vector<double> submit_ns, finish_ns;
  const double count = double{1} * options.tensors * options.ranks;
  for (int step = 0; step < options.warm_up_steps + options.steps; ++step) {
    const auto start = Clock::now();
    ranks.SubmitAll();
    const auto submitted = Clock::now();
    ranks.Finish();
    const auto end = Clock::now();
    if (step < options.warm_up_steps) continue;
    using Nanos = std::chrono::duration<double, std::nano>;
    submit_ns.push_back(Nanos(submitted - start).count() / count);
    finish_ns.push_back(Nanos(end - submitted).count() / count);
  }
  return {"negotiators", base::Median(submit_ns), base::Median(finish_ns), 0};
}

}  // namespace hvdlite::negotiation_bench
