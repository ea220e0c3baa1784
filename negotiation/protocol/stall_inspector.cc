#include "negotiation/protocol/stall_inspector.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "negotiation/protocol/answer_text.h"
#include "negotiation/protocol/rank_list.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {
namespace {

// Bounds a message, whatever the number of operations.
constexpr size_t kMaxStalls = 4;  // operations that are named

int64_t Interval(absl::Duration allowed) {
  const absl::Duration shortest = std::min(allowed, absl::Hours(1));
  return std::max<int64_t>(absl::ToInt64Nanoseconds(shortest / 4), 1'000'000);
}

bool PressesMore(const wire::Stall& a, const wire::Stall& b) {
  const auto key = [](const wire::Stall& stall) {
    return std::make_tuple(!stall.fatal(),
                           -static_cast<int64_t>(stall.waiting_ms()));
  };
  return key(a) != key(b) ? key(a) < key(b) : a.name() < b.name();
}

// Adds a stall whose name is not in the list, and keeps the most pressing ones.
void AddPressing(const wire::Stall& stall, std::vector<wire::Stall>& stalls) {
  const auto place = absl::c_upper_bound(stalls, stall, PressesMore);
  if (place == stalls.end() && stalls.size() >= kMaxStalls) return;
  stalls.insert(place, stall);
  if (stalls.size() > kMaxStalls) stalls.pop_back();
}

// For example "'x' has" or "'x', 'y' and 5 more have".
std::string NamesText(const std::vector<std::string>& names, uint32_t more) {
  std::string text = absl::StrCat("'", absl::StrJoin(names, "', '"), "'");
  if (more > 0) absl::StrAppend(&text, " and ", more, " more");
  return absl::StrCat(text, names.size() + more == 1 ? " has" : " have");
}

}  // namespace

StallInspector::StallInspector(const Options& options, const TreePosition& tree,
                               const Membership& membership)
    : options_(options),
      is_root_(tree.parent < 0),
      membership_(membership),
      allowed_(std::min(options.warning, options.failure)),
      interval_ns_(Interval(allowed_)),
      probe_({.rank = options.rank,
              .overdue_after = allowed_,
              .explains = options.explains},
             tree, membership) {}

void StallInspector::OnLeave(int64_t now_ns) {
  leaving_since_ns_ = now_ns;
  probe_.OnLeave();
}

// ---- Reports, on their way up.

wire::Stall StallInspector::StallOf(const std::string& name, int64_t since_ns,
                                    int64_t now_ns) const {
  wire::Stall stall;
  stall.set_name(name);
  stall.set_waiting_ms(
      static_cast<uint64_t>(std::max<int64_t>(now_ns - since_ns, 0)) /
      1'000'000);
  stall.set_fatal(absl::Nanoseconds(now_ns - since_ns) >= options_.failure);
  return stall;
}

void StallInspector::Look(TensorTable& table,
                          std::optional<int64_t> joining_since_ns,
                          int64_t now_ns) {
  if (now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + interval_ns_;

  std::vector<wire::Stall> pressing;
  table.Visit([&](const TensorSlot& slot) {
    if (!slot.has_waited(allowed_, now_ns)) return;
    wire::Stall stall = StallOf(slot.name, slot.submitted_ns, now_ns);
    stall.set_process_set(slot.process_set);
    AddPressing(stall, pressing);
  });
  const auto add = [&](const char* name, std::optional<int64_t> since_ns,
                       bool may_be_fatal) {
    if (!since_ns.has_value()) return;
    wire::Stall stall = StallOf(name, *since_ns, now_ns);
    if (!may_be_fatal) stall.set_fatal(false);
    if (stall.fatal() ||
        absl::Nanoseconds(now_ns - *since_ns) >= options_.warning) {
      AddPressing(stall, pressing);
    }
  };
  add(kJoinName, joining_since_ns, /*may_be_fatal=*/false);
  add(kShutdownName, leaving_since_ns_, /*may_be_fatal=*/true);

  std::map<std::string, int64_t> still_reported;
  for (const wire::Stall& stall : pressing) {
    const auto reported = reported_ns_.find(stall.name());
    const int64_t submitted_ns =
        now_ns - static_cast<int64_t>(stall.waiting_ms() + 1) * 1'000'000;
    const bool known =
        reported != reported_ns_.end() && reported->second >= submitted_ns &&
        absl::Nanoseconds(now_ns - reported->second) < options_.warning;
    if (known && !stall.fatal()) {
      still_reported.insert(*reported);
      continue;
    }
    still_reported[stall.name()] = now_ns;
    OnStall(stall, now_ns);
  }
  reported_ns_ = std::move(still_reported);
}

void StallInspector::OnStall(const wire::Stall& stall, int64_t now_ns) {
  const absl::Duration known_for = allowed_ / 2;
  absl::erase_if(told_, [&](const auto& told) {
    return absl::Nanoseconds(now_ns - told.second.at_ns) >= known_for;
  });
  const auto told = told_.find(stall.name());
  if (told != told_.end() && told->second.fatal >= stall.fatal()) return;
  wire::Stall merged = stall;
  const auto known = absl::c_find_if(stalls_, [&](const wire::Stall& other) {
    return other.name() == stall.name();
  });
  if (known != stalls_.end()) {
    merged.set_waiting_ms(std::max(known->waiting_ms(), stall.waiting_ms()));
    merged.set_fatal(known->fatal() || stall.fatal());
    stalls_.erase(known);
  }
  AddPressing(merged, stalls_);
}

bool StallInspector::TellsNow(int64_t now_ns) const {
  return !stalls_.empty() &&
         (now_ns >= next_telling_ns_ ||
          (stalls_.front().fatal() && now_ns >= next_fatal_telling_ns_));
}

std::vector<wire::Stall> StallInspector::Tell(int64_t now_ns) {
  next_telling_ns_ = now_ns + interval_ns_;
  for (const wire::Stall& stall : stalls_) {
    if (stall.fatal()) next_fatal_telling_ns_ = next_telling_ns_;
    told_[stall.name()] = {now_ns, stall.fatal()};
  }
  return std::exchange(stalls_, {});
}

std::vector<wire::Stall> StallInspector::TakeStalls(int64_t now_ns) {
  if (!TellsNow(now_ns)) return {};
  return Tell(now_ns);
}

std::optional<wire::Probe> StallInspector::NextProbe(int64_t now_ns) {
  if (probe_.is_open() ||
      !(probes_in_any_case_ || asks_everybody_ || TellsNow(now_ns))) {
    return std::nullopt;
  }
  probes_in_any_case_ = false;
  wire::Probe probe;
  probe.set_number(++probes_);
  probed_ = Tell(now_ns);
  for (const wire::Stall& stall : probed_) {
    probe.add_names(stall.name());
    probe.add_process_sets(stall.process_set());
  }
  // It comes after the others: answers come in the order of the names.
  if (std::exchange(asks_everybody_, false)) {
    probe.add_names(kEverybodyName);
    probe.add_process_sets(0);
  }
  return probe;
}

// ---- Verdicts.

StallInspector::Verdict StallInspector::Conclude(
    const wire::Answer& answer, const std::vector<std::string>& hosts,
    const std::vector<int>& pids, int64_t now_ns) {
  // Operations that wait for the same ranks are one stall.
  struct Group {
    std::vector<std::string> names;
    uint64_t waiting_ms = 0;
    bool overdue = false;  // waited longer than `failure`
    bool given_up = false;
    bool news = false;  // not warned about recently
    RankRuns ranks;
    int members = 0;
    bool leaving = false;
  };
  const AnswerText words(answer, hosts, pids);
  const int world_size = membership_.size(/*id=*/0);
  const std::vector<wire::Stall> probed = std::exchange(probed_, {});
  const auto stalls = static_cast<size_t>(answer.stalls_size());
  // Ranks that wait may be waiting for a rank that computes.
  bool computing = false;
  for (size_t i = 0; i < probed.size() && i < stalls; ++i) {
    computing |= answer.stalls(static_cast<int>(i)).computing();
  }
  const absl::Duration patience =
      options_.failure == absl::InfiniteDuration()
          ? options_.failure
          : std::max(options_.failure - options_.warning, absl::ZeroDuration());
  std::map<std::string, History> history;
  absl::btree_map<std::string, Group> groups;  // by the ranks, as text
  for (size_t i = 0; i < probed.size() && i < stalls; ++i) {
    const wire::Stall& stall = probed[i];
    const wire::StallAnswer& stalled = answer.stalls(static_cast<int>(i));
    if (!stalled.pending()) continue;
    const RankRuns missing = FromWire(stalled.missing(), world_size);
    const RankRuns silent = FromWire(stalled.silent(), world_size);
    if (missing.empty() && silent.empty()) continue;
    History& past = history[stall.name()];
    if (const auto known = history_.find(stall.name());
        known != history_.end()) {
      past = known->second;
    }
    if (!stalled.stuck() && computing) past.hopeful_ns = now_ns;
    std::vector<std::string> texts = words.Missing(missing);
    for (std::string& text : words.Silent(silent)) {
      texts.push_back(std::move(text));
    }
    const bool leaving = stall.name() == kShutdownName;
    // Leaving is a group of its own, since it has another remedy.
    Group& group =
        groups[absl::StrCat(absl::StrJoin(texts, "; "), leaving ? "." : "")];
    group.leaving = leaving;
    group.names.push_back(stall.name());
    group.waiting_ms = std::max(group.waiting_ms, stall.waiting_ms());
    group.overdue = group.overdue || stall.fatal();
    group.given_up =
        group.given_up ||
        (stall.fatal() &&
         (!past.hopeful_ns.has_value() ||
          absl::Nanoseconds(now_ns - *past.hopeful_ns) >= patience));
    // Overdue operations are looked at more often.
    group.news =
        group.news || !past.warned_ns.has_value() ||
        absl::Nanoseconds(now_ns - *past.warned_ns) >= options_.warning * 3 / 4;
    group.ranks = missing;
    group.ranks.Add(silent);
    if (membership_.exists(stall.process_set())) {
      group.members = membership_.size(stall.process_set());
    }
  }
  history_ = std::move(history);
  // With several groups, it is unknown what the unnamed operations wait for. If
  // the probe had room for more, they were not overdue when it was sent, and
  // may wait for other ranks. (Some of them may in any case.)
  const uint32_t named = static_cast<uint32_t>(probed.size());
  const uint32_t more =
      groups.size() == 1 && named >= kMaxStalls && answer.overdue() > named
          ? answer.overdue() - named
          : 0;
  Verdict verdict;
  for (const auto& [texts, group] : groups) {
    verdict.fatal = verdict.fatal || group.given_up;
  }
  std::vector<std::string> messages;
  RankRuns ranks;
  for (const auto& [texts, group] : groups) {
    if (verdict.fatal ? !group.given_up : !group.news) continue;
    for (const std::string& name : group.names) {
      history_[name].warned_ns = now_ns;
    }
    ranks.Add(group.ranks);
    std::string message = absl::StrCat(
        NamesText(group.names, more), " waited ", FormatAge(group.waiting_ms),
        " for ", group.ranks.size(), " of ", group.members, " ranks to ");
    if (group.leaving) {
      absl::StrAppend(&message, "call it: ", texts,
                      " The world ends when every rank has left it; find out "
                      "why these ranks do not call shutdown().");
    } else {
      absl::StrAppend(
          &message, "submit ", group.names.size() + more == 1 ? "it" : "them",
          ": ", texts,
          ". Every rank must submit the same operations; look for a branch "
          "that only some ranks take, or for names or groups that differ.");
    }
    if (group.overdue && !group.given_up) {
      absl::StrAppend(&message,
                      " The world does not end yet, because the ranks that it "
                      "waits for are slow, not stuck.");
    }
    messages.push_back(std::move(message));
  }
  if (messages.empty()) return verdict;
  verdict.message = absl::StrJoin(messages, "\n");
  verdict.details = words.Details(ranks, /*submissions=*/false);
  return verdict;
}

std::optional<std::string> StallInspector::ReportOfEverybody(
    const wire::Answer& answer, const std::vector<std::string>& hosts,
    const std::vector<int>& pids) const {
  // If this name was not probed for, the missing ranks belong to another probe.
  if (answer.stalls_size() != static_cast<int>(probed_.size()) + 1) {
    return std::nullopt;
  }
  const int world_size = membership_.size(/*id=*/0);
  const wire::StallAnswer& all = answer.stalls(answer.stalls_size() - 1);
  const AnswerText words(answer, hosts, pids);
  std::string text = absl::StrCat(
      "what all ", world_size, " ranks are doing (requested by SIGUSR2):",
      words.Details(FromWire(all.missing(), world_size),
                    /*submissions=*/true));
  for (const std::string& line :
       words.Silent(FromWire(all.silent(), world_size))) {
    absl::StrAppend(&text, "\n  ", line);
  }
  return text;
}

std::optional<int64_t> StallInspector::next_deadline_ns(bool waits) const {
  std::optional<int64_t> deadline = probe_.next_deadline_ns();
  const auto at = [&](int64_t time_ns) {
    deadline = std::min(deadline.value_or(time_ns), time_ns);
  };
  if (waits && allowed_ < absl::InfiniteDuration()) at(next_look_ns_);
  // At the root, stalls wait for the answer as well.
  if (!stalls_.empty() && !(is_root_ && probe_.is_open())) {
    at(stalls_.front().fatal()
           ? std::min(next_telling_ns_, next_fatal_telling_ns_)
           : next_telling_ns_);
  }
  return deadline;
}

}  // namespace hvdlite::negotiation
