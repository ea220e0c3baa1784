#include "negotiation/protocol/answer_text.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "negotiation/protocol/process_look.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {
namespace {

RankRuns Without(const RankRuns& ranks, const std::vector<int>& removed) {
  RankRuns rest;
  for (RankRuns::Run run : ranks.runs()) {
    for (const int rank : removed) {  // ascending
      if (rank < run.first || rank > run.last) continue;
      if (rank > run.first) rest.Add({run.first, rank - 1});
      run.first = rank + 1;
    }
    if (run.first <= run.last) rest.Add(run);
  }
  rest.AddUnnamed(ranks.unnamed());
  return rest;
}

std::string SubmissionText(const wire::RankState& state) {
  if (state.last_name().empty()) return "has submitted nothing yet";
  return absl::StrCat("last submitted '", state.last_name(), "' ",
                      FormatAge(state.since_ms()), " ago");
}

}  // namespace

std::string FormatAge(uint64_t age_ms) {
  const absl::Duration age = absl::Milliseconds(static_cast<int64_t>(age_ms));
  return absl::FormatDuration(
      age < absl::Seconds(1) ? age : absl::Trunc(age, absl::Milliseconds(100)));
}

std::string AnswerText::RankText(int rank) const {
  return absl::StrCat("rank ", rank, " (", hosts_[rank], ")");
}

std::vector<std::string> AnswerText::Missing(const RankRuns& missing) const {
  std::vector<std::string> texts;
  std::vector<int> described;
  for (const wire::RankState& state : answer_.states()) {
    if (!missing.Contains(state.rank())) continue;
    described.push_back(state.rank());
    texts.push_back(
        absl::StrCat(RankText(state.rank()), ": ", SubmissionText(state)));
  }
  const RankRuns rest = Without(missing, described);
  if (!rest.empty()) texts.push_back(rest.ToString());
  return texts;
}

std::string AnswerText::LookText(int rank) const {
  for (const wire::RankState& state : answer_.states()) {
    if (state.rank() != rank || !state.process().from_outside()) continue;
    const std::string text = DescribeProcess(FromWire(state.process()));
    if (!text.empty()) return absl::StrCat("; its process ", text);
  }
  return ": its process is stopped or overloaded, or the link to it is slow or "
         "cut";
}

std::vector<std::string> AnswerText::Silent(const RankRuns& silent) const {
  std::vector<std::string> texts;
  std::vector<int> described;
  for (const uint32_t rank : answer_.silent()) {
    if (!silent.Contains(static_cast<int>(rank))) continue;
    described.push_back(static_cast<int>(rank));
    texts.push_back(absl::StrCat(RankText(described.back()),
                                 ": does not answer",
                                 LookText(described.back())));
  }
  const RankRuns rest = Without(silent, described);
  if (rest.empty()) return texts;
  std::string through = "through them";
  if (described.empty()) {
    // No operation waits for those ranks themselves.
    const std::vector<int> ranks(answer_.silent().begin(),
                                 answer_.silent().end());
    through = absl::StrCat("through ", FormatRanks(ranks));
  } else if (described.size() == 1) {
    through = "through it";
  }
  texts.push_back(
      absl::StrCat(rest.ToString(), ": asked ", through, "; no answer either"));
  return texts;
}

std::string AnswerText::Details(const RankRuns& ranks, bool submissions) const {
  std::string text;
  for (const wire::RankState& state : answer_.states()) {
    const int rank = state.rank();
    if (!ranks.Contains(rank) || state.process().from_outside()) continue;
    std::vector<std::string> parts;
    std::string process = DescribeProcess(FromWire(state.process()));
    if (!process.empty()) parts.push_back(std::move(process));
    if (submissions) parts.push_back(SubmissionText(state));
    if (!state.done_name().empty()) {
      parts.push_back(absl::StrCat("last finished '", state.done_name(), "' ",
                                   FormatAge(state.done_ms()), " ago"));
    }
    if (parts.empty()) continue;
    absl::StrAppend(&text, "\n  rank ", rank, " (", hosts_[rank]);
    if (static_cast<size_t>(rank) < pids_.size()) {
      absl::StrAppend(&text, ", process ", pids_[rank]);
    }
    absl::StrAppend(&text, ") ", absl::StrJoin(parts, "; "));
  }
  return text + StacksOfAll();
}

std::string AnswerText::StacksOfAll() const {
  std::vector<std::pair<RankRuns, absl::string_view>> groups;
  const int world_size = static_cast<int>(hosts_.size());
  for (const wire::Stacks& stacks : answer_.stacks()) {
    RankRuns whose = FromWire(stacks.ranks(), world_size);
    if (!whose.runs().empty()) groups.emplace_back(whose, stacks.text());
  }
  absl::c_sort(groups, [](const auto& a, const auto& b) {
    return a.first.runs().front().first < b.first.runs().front().first;
  });
  std::string text;
  for (const auto& [whose, stacks] : groups) {
    absl::StrAppend(&text, "\n  ", whose.ToString(), ":");
    for (const absl::string_view line : absl::StrSplit(stacks, '\n')) {
      absl::StrAppend(&text, "\n    ", line);
    }
  }
  return text;
}

}  // namespace hvdlite::negotiation
