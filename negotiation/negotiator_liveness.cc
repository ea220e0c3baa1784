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

bool Negotiator::waits() const {
  return pending_ > 0 || join_token_.has_value() || running_ ||
         !decisions_.empty() || left_;
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
  if (!given_up_.has_value()) {
    const auto lost = heartbeat_.Advance(waits(), now_ns);
    if (lost.has_value()) OnLost(*lost);
  }
  if (pending_ > 0 || join_token_.has_value()) {
    const auto joining_since_ns = join_token_.has_value()
                                      ? std::optional(join_submitted_ns_)
                                      : std::nullopt;
    for (wire::Stall& stall :
         stalls_.Overdue(table_, joining_since_ns, now_ns)) {
      if (is_root()) {
        stalls_.OnStall(stall, now_ns_);
      } else {
        *report_.rest().add_stalls() = std::move(stall);
      }
    }
  }
  InspectStalls();
}

void Negotiator::OnInquiry(const wire::Inquiry& inquiry) {
  *directive_.mutable_inquiry() = inquiry;
  stalls_.Begin(inquiry, table_, now_ns_);
  InspectStalls();
}

void Negotiator::InspectStalls() {
  std::optional<StallInspector::Answer> answer = stalls_.TakeAnswer(now_ns_);
  if (answer.has_value() && !is_root()) {
    report_.rest().set_inquiry(answer->inquiry);
    report_.rest().clear_answers();
    for (wire::StallAnswer& tensor : answer->answers) {
      *report_.rest().add_answers() = std::move(tensor);
    }
  }
  if (!is_root()) return;
  if (answer.has_value() && answer->inquiry == last_call_) {
    last_call_answered_ = true;
    for (const wire::Departure& departure : std::exchange(departures_, {})) {
      decision_maker_.OnDeparture(departure);
    }
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
  }
  if (auto inquiry = stalls_.NextInquiry(); inquiry.has_value()) {
    if (!departures_.empty() && !last_call_.has_value()) {
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
      stalls_.next_deadline_ns(pending_ > 0 || join_token_.has_value());
  const std::optional<int64_t> heartbeat =
      given_up_.has_value() ? std::nullopt : heartbeat_.next_deadline_ns();
  if (heartbeat.has_value()) {
    deadline = std::min(deadline.value_or(*heartbeat), *heartbeat);
  }
  return deadline;
}

}  // namespace hvdlite::negotiation
