#include "negotiation/stall_inspector.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvdlite::negotiation {
namespace {

int64_t CheckInterval(const absl::Duration warning,
                      const absl::Duration failure) {
  const absl::Duration shortest = std::min({warning, failure, absl::Hours(1)});
  return std::max<int64_t>(absl::ToInt64Nanoseconds(shortest / 4), 1'000'000);
}

// As the name of an operation.
constexpr char kJoin[] = "join()";

// "rank 3 (node2): last submitted 'x' 12.0 s ago".
std::string MissingText(const wire::MissingRank& missing,
                        const std::vector<std::string>& hosts) {
  std::string text =
      absl::StrCat("rank ", missing.rank(), " (", hosts[missing.rank()], "): ");
  if (missing.silent()) {
    absl::StrAppend(&text,
                    "does not answer, its process may be stopped or swamped");
  } else if (missing.last_name().empty()) {
    absl::StrAppend(&text, "has submitted nothing yet");
  } else {
    absl::StrAppend(
        &text, "last submitted '", missing.last_name(), "' ",
        absl::FormatDuration(absl::Milliseconds(missing.since_ms())), " ago");
  }
  return text;
}

// "'x' has", "'x', 'y', 'z' and 5 more have".
std::string NamesText(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  const size_t shown = std::min(names.size(), kShown);
  std::string text = absl::StrCat(
      "'", absl::StrJoin(names.begin(), names.begin() + shown, "', '"), "'");
  if (names.size() > shown) {
    absl::StrAppend(&text, " and ", names.size() - shown, " more");
  }
  return absl::StrCat(text, names.size() == 1 ? " has" : " have");
}

}  // namespace

StallInspector::StallInspector(const Options& options, const TreePosition& tree,
                               const Membership& membership)
    : options_(options), tree_(tree), membership_(membership) {}

bool StallInspector::IsAwaited(ProcessSetId process_set, int rank) const {
  return membership_.IsMember(process_set, rank) &&
         !membership_.has_joined(rank);
}

void StallInspector::OnSubmit(const TensorSlot& slot) {
  last_id_ = slot.id;
  if (!slot.id.has_value()) last_name_ = slot.name;
  last_submit_ns_ = slot.submitted_ns;
}

std::string StallInspector::LastName(TensorTable& table) const {
  const TensorSlot* const slot =
      last_id_.has_value() ? table.FindById(*last_id_) : nullptr;
  return slot != nullptr ? slot->name : last_name_;
}

bool StallInspector::IsOverdue(const TensorSlot& slot, int64_t now_ns,
                               bool* fatal) const {
  const absl::Duration waiting = absl::Nanoseconds(now_ns - slot.submitted_ns);
  *fatal = waiting >= options_.failure;
  return *fatal || waiting >= options_.warning;
}

std::vector<wire::Stall> StallInspector::Overdue(
    TensorTable& table, std::optional<int64_t> joining_since_ns,
    int64_t now_ns) {
  if (now_ns < next_check_ns_) return {};
  next_check_ns_ = now_ns + CheckInterval(options_.warning, options_.failure);

  std::vector<wire::Stall> stalls;
  absl::flat_hash_map<std::string, int64_t> still_reported;
  TensorSlot join;
  join.name = kJoin;
  std::vector<TensorSlot*> slots = table.All();
  if (joining_since_ns.has_value()) {
    join.token = Token();
    join.submitted_ns = *joining_since_ns;
    slots.push_back(&join);
  }
  for (const TensorSlot* slot : slots) {
    bool fatal = false;
    if (!slot->token.has_value() || !IsOverdue(*slot, now_ns, &fatal)) continue;
    if (slot == &join) fatal = false;
    const auto reported = reported_ns_.find(slot->name);
    const bool known = reported != reported_ns_.end() &&
                       reported->second >= slot->submitted_ns;
    if (known && !fatal &&
        absl::Nanoseconds(now_ns - reported->second) < options_.warning) {
      still_reported.insert(*reported);
      continue;
    }
    still_reported[slot->name] = now_ns;
    wire::Stall stall;
    stall.set_name(slot->name);
    stall.set_waiting_ms((now_ns - slot->submitted_ns) / 1'000'000);
    stall.set_fatal(fatal);
    stall.set_process_set(slot->process_set);
    stalls.push_back(std::move(stall));
  }
  reported_ns_ = std::move(still_reported);
  return stalls;
}

void StallInspector::OnStall(const wire::Stall& stall, int64_t now_ns) {
  absl::erase_if(known_ns_, [&](const auto& known) {
    return absl::Nanoseconds(now_ns - known.second) >= options_.warning / 2;
  });
  if (!stall.fatal() && !known_ns_.try_emplace(stall.name(), now_ns).second) {
    return;
  }
  wire::Stall& known = stalls_[stall.name()];
  known.set_name(stall.name());
  known.set_waiting_ms(std::max(known.waiting_ms(), stall.waiting_ms()));
  known.set_fatal(known.fatal() || stall.fatal());
  known.set_process_set(stall.process_set());
}

std::optional<wire::Inquiry> StallInspector::NextInquiry() {
  if (open_.has_value() || (stalls_.empty() && !inquires_in_any_case_)) {
    return std::nullopt;
  }
  inquires_in_any_case_ = false;
  wire::Inquiry inquiry;
  inquiry.set_number(++inquiries_);
  for (const auto& [name, stall] : stalls_) {
    inquiry.add_names(name);
    inquiry.add_process_sets(stall.process_set());
  }
  inquired_ = std::exchange(stalls_, {});
  return inquiry;
}

void StallInspector::Begin(const wire::Inquiry& inquiry, TensorTable& table,
                           int64_t now_ns) {
  Open open;
  open.number = inquiry.number();
  // Higher ranks wait longer, so that the answers from below are in by then.
  open.deadline_ns = now_ns + absl::ToInt64Nanoseconds(
                                  options_.answer_deadline * tree_.height);
  for (const TreePosition::Child& child : tree_.children) {
    open.unanswered.insert(child.rank);
  }
  for (int i = 0; i < inquiry.names_size(); ++i) {
    const std::string& name = inquiry.names(i);
    const ProcessSetId process_set =
        i < inquiry.process_sets_size() ? inquiry.process_sets(i) : 0;
    wire::StallAnswer& answer = open.answers[name];
    answer.set_name(name);
    open.process_sets[name] = process_set;
    if (!IsAwaited(process_set, options_.rank)) continue;
    const TensorSlot* slot = table.Find(name);
    if (slot != nullptr && slot->token.has_value()) continue;
    wire::MissingRank* missing = answer.add_missing();
    missing->set_rank(options_.rank);
    missing->set_last_name(LastName(table));
    missing->set_since_ms((now_ns - last_submit_ns_) / 1'000'000);
  }
  open_ = std::move(open);
}

void StallInspector::OnAnswer(int child_rank, const wire::Report& report) {
  if (!open_.has_value() || report.inquiry() != open_->number ||
      open_->unanswered.erase(child_rank) == 0) {
    return;
  }
  for (const wire::StallAnswer& answer : report.answers()) {
    const auto known = open_->answers.find(answer.name());
    if (known == open_->answers.end()) continue;
    for (const wire::MissingRank& missing : answer.missing()) {
      if (!membership_.IsMember(/*id=*/0, missing.rank())) continue;
      *known->second.add_missing() = missing;
    }
  }
}

std::optional<StallInspector::Answer> StallInspector::TakeAnswer(
    int64_t now_ns) {
  if (!open_.has_value()) return std::nullopt;
  if (!open_->unanswered.empty() && now_ns < open_->deadline_ns) {
    return std::nullopt;
  }
  Answer result;
  result.inquiry = open_->number;
  for (auto& [name, answer] : open_->answers) {
    for (const TreePosition::Child& child : tree_.children) {
      if (!open_->unanswered.contains(child.rank)) continue;
      for (const int rank : child.subtree) {
        if (!IsAwaited(open_->process_sets[name], rank)) continue;
        wire::MissingRank* missing = answer.add_missing();
        missing->set_rank(rank);
        missing->set_silent(true);
      }
    }
    result.answers.push_back(std::move(answer));
  }
  open_.reset();
  return result;
}

std::vector<StallInspector::Verdict> StallInspector::Verdicts(
    const Answer& answer, const std::vector<std::string>& hosts) {
  // Tensors that wait for the same ranks are one stall.
  struct Group {
    std::vector<std::string> names;
    uint64_t waiting_ms = 0;
    bool fatal = false;
    int missing = 0;
    int members = 0;
  };
  absl::btree_map<std::string, Group> groups;  // by the ranks, as text
  for (const wire::StallAnswer& tensor : answer.answers) {
    const auto stall = inquired_.find(tensor.name());
    if (stall == inquired_.end() || tensor.missing().empty()) continue;
    std::vector<wire::MissingRank> missing(tensor.missing().begin(),
                                           tensor.missing().end());
    std::sort(missing.begin(), missing.end(),
              [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
    Group& group = groups[absl::StrJoin(
        missing, "; ", [&](std::string* out, const wire::MissingRank& rank) {
          absl::StrAppend(out, MissingText(rank, hosts));
        })];
    group.names.push_back(tensor.name());
    group.waiting_ms = std::max(group.waiting_ms, stall->second.waiting_ms());
    group.fatal = group.fatal || stall->second.fatal();
    group.missing = tensor.missing_size();
    const ProcessSetId process_set = stall->second.process_set();
    if (membership_.exists(process_set)) {
      group.members = membership_.size(process_set);
    }
  }
  std::vector<Verdict> verdicts;
  for (const auto& [ranks, group] : groups) {
    verdicts.push_back(
        {absl::StrCat(
             NamesText(group.names), " waited ",
             absl::FormatDuration(absl::Milliseconds(group.waiting_ms)),
             " for ", group.missing, " of ", group.members, " ranks to submit ",
             group.names.size() == 1 ? "it" : "them", ": ", ranks,
             ". Every rank must submit the same operations; look for a branch "
             "that only some ranks take, or for names or groups that differ."),
         group.fatal});
  }
  inquired_.clear();
  return verdicts;
}

std::optional<int64_t> StallInspector::next_deadline_ns(bool pending) const {
  std::optional<int64_t> deadline;
  const bool inspects =
      std::min(options_.warning, options_.failure) < absl::InfiniteDuration();
  if (pending && inspects) deadline = next_check_ns_;
  if (open_.has_value() && !open_->unanswered.empty()) {
    deadline =
        std::min(deadline.value_or(open_->deadline_ns), open_->deadline_ns);
  }
  return deadline;
}

}  // namespace hvdlite::negotiation
