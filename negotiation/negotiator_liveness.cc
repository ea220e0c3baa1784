// The Negotiator's watch over ranks that submit nothing (stalls) and over those
// that give no sign of life (heartbeat).
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "negotiation/negotiator.h"

namespace hvdlite::negotiation {

bool Negotiator::waits_for_submissions() const {
  return pending_ > 0 || join_token_.has_value() || (left_ && !over());
}

bool Negotiator::waits() const {
  return waits_for_submissions() || running_ || !decisions_.empty();
}

void Negotiator::OnLost(const Heartbeat::Lost& lost) {
  const auto name = [this](int rank) {
    return absl::StrCat("rank ", rank, " (",
                        options_.layout->host_names()[rank], ")");
  };
  const std::string reason = absl::StrCat(
      name(lost.rank), " has given no sign of life to ", name(options_.rank),
      " for ", absl::FormatDuration(absl::Trunc(lost.silent, absl::Seconds(1))),
      "; see whether its process is stopped or swamped, its host is down, or "
      "the link between the two is cut");
  if (lost.rank == tree_.parent) {
    EndSubtree(reason);
  } else {
    BreakWorld(reason);
  }
}

void Negotiator::Advance(int64_t now_ns) {
  now_ns_ = now_ns;
  if (!over()) {
    const auto lost = heartbeat_.Advance(waits(), now_ns);
    if (lost.has_value()) OnLost(*lost);
  }
  if (waits_for_submissions()) {
    stalls_.Look(table_,
                 join_token_.has_value() ? std::optional(join_submitted_ns_)
                                         : std::nullopt,
                 now_ns);
  }
  InspectStalls();
}

void Negotiator::OnInquiry(const wire::Inquiry& inquiry) {
  *directive_.mutable_inquiry() = inquiry;
  stalls_.Begin(inquiry, table_, now_ns_);
  InspectStalls();
}

void Negotiator::InspectStalls() {
  std::optional<wire::Answer> answer = stalls_.TakeAnswer(now_ns_);
  if (!is_root()) {
    if (answer.has_value()) {
      *report_.rest().mutable_answer() = *std::move(answer);
    }
    for (wire::Stall& stall : stalls_.TakeStalls(now_ns_)) {
      *report_.rest().add_stalls() = std::move(stall);
    }
    return;
  }
  if (answer.has_value()) {
    for (StallInspector::Verdict& verdict :
         stalls_.Verdicts(*answer, options_.layout->host_names())) {
      if (verdict.fatal) {
        BreakWorld(verdict.message);
      } else {
        warnings_.push_back(std::move(verdict.message));
      }
    }
    if (answer->inquiry() == last_call_) {
      last_call_answered_ = true;
      decision_maker_.OnDeparture(*departure_);
    }
  }
  const uint64_t all = (uint64_t{2} << tree_.children.size()) - 1;
  if (left_sources_ == all && last_call_answered_) {
    // An answer might come after the shutdown: it is waited for before.
    if (!stalls_.inquires()) decision_maker_.OnAllLeft();
    return;
  }
  if (auto inquiry = stalls_.NextInquiry(now_ns_); inquiry.has_value()) {
    if (departure_.has_value() && !last_call_.has_value()) {
      last_call_ = inquiry->number();
    }
    OnInquiry(*inquiry);
  }
}

std::vector<std::string> Negotiator::TakeWarnings() {
  return std::exchange(warnings_, {});
}

std::optional<int64_t> Negotiator::next_deadline_ns() const {
  std::optional<int64_t> deadline =
      stalls_.next_deadline_ns(waits_for_submissions());
  const std::optional<int64_t> heartbeat =
      over() ? std::nullopt : heartbeat_.next_deadline_ns();
  if (heartbeat.has_value()) {
    deadline = std::min(deadline.value_or(*heartbeat), *heartbeat);
  }
  return deadline;
}

}  // namespace hvdlite::negotiation
