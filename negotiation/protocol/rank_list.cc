#include "negotiation/protocol/rank_list.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvdlite::negotiation {

RankRuns::RankRuns(absl::Span<const int> ranks) {
  for (const int rank : ranks) {
    // Most ranks are added in ascending order.
    if (!runs_.empty() && runs_.back().last + 1 == rank) {
      runs_.back().last = rank;
    } else {
      runs_.push_back({rank, rank});
    }
  }
  Normalize();
}

void RankRuns::Normalize() {
  std::sort(runs_.begin(), runs_.end(),
            [](const Run& a, const Run& b) { return a.first < b.first; });
  size_t kept = 0;
  for (const Run& run : runs_) {
    if (kept > 0 && run.first <= runs_[kept - 1].last + 1) {
      runs_[kept - 1].last = std::max(runs_[kept - 1].last, run.last);
    } else {
      runs_[kept++] = run;
    }
  }
  runs_.resize(kept);
}

void RankRuns::Add(Run run) {
  const bool in_order = runs_.empty() || run.first > runs_.back().last;
  if (in_order && !runs_.empty() && run.first == runs_.back().last + 1) {
    runs_.back().last = run.last;
    return;
  }
  runs_.push_back(run);
  if (!in_order) Normalize();
}

void RankRuns::Add(const RankRuns& ranks) {
  runs_.insert(runs_.end(), ranks.runs_.begin(), ranks.runs_.end());
  unnamed_ += ranks.unnamed_;
  Normalize();
}

void RankRuns::Truncate(size_t max_runs) {
  while (runs_.size() > max_runs) {
    unnamed_ += runs_.back().last - runs_.back().first + 1;
    runs_.pop_back();
  }
}

int RankRuns::size() const {
  int size = unnamed_;
  for (const Run& run : runs_) size += run.last - run.first + 1;
  return size;
}

bool RankRuns::Contains(int rank) const {
  const auto after = std::upper_bound(
      runs_.begin(), runs_.end(), rank,
      [](int value, const Run& run) { return value < run.first; });
  return after != runs_.begin() && rank <= (after - 1)->last;
}

std::vector<int> RankRuns::Lowest(size_t count) const {
  std::vector<int> ranks;
  for (const Run& run : runs_) {
    for (int rank = run.first; rank <= run.last; ++rank) {
      if (ranks.size() == count) return ranks;
      ranks.push_back(rank);
    }
  }
  return ranks;
}

std::string RankRuns::ToString() const {
  std::string text = absl::StrCat(
      size() == 1 ? "rank " : "ranks ",
      absl::StrJoin(runs_, ", ", [](std::string* out, const Run& run) {
        absl::StrAppend(out, run.first);
        if (run.last > run.first) absl::StrAppend(out, "-", run.last);
      }));
  if (unnamed_ > 0) absl::StrAppend(&text, " and ", unnamed_, " more");
  return text;
}

std::string FormatRanks(absl::Span<const int> ranks) {
  return RankRuns(ranks).ToString();
}

}  // namespace hvdlite::negotiation
