// Sets of ranks, as short text and as few numbers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hvdlite::negotiation {

// A set of ranks as runs of consecutive numbers. It is small if ranks that
// belong together have consecutive numbers, however many they are.
class RankRuns {
 public:
  struct Run {
    int first = 0;
    int last = 0;
    friend bool operator==(const Run&, const Run&) = default;
  };
  RankRuns() = default;
  // In any order.
  explicit RankRuns(absl::Span<const int> ranks);

  void Add(Run run);
  void Add(const RankRuns& ranks);
  // Adds ranks that are counted, but not named. None of them may be named, too.
  void AddUnnamed(int ranks) { unnamed_ += ranks; }
  // Names only the lowest runs.
  void Truncate(size_t max_runs);

  int size() const;  // including ranks that are not named
  int unnamed() const { return unnamed_; }
  bool empty() const { return size() == 0; }
  bool Contains(int rank) const;
  absl::Span<const Run> runs() const { return runs_; }  // ascending, apart
  // The lowest ranks that are named, at most `count`, ascending.
  std::vector<int> Lowest(size_t count) const;

  // For example "rank 3", "ranks 0-2, 5", or "ranks 0-2, 5 and 9 more". The set
  // must not be empty.
  std::string ToString() const;

 private:
  void Normalize();

  std::vector<Run> runs_;
  int unnamed_ = 0;
};

// For example "rank 3" or "ranks 0-2, 5". `ranks` is not empty, in any order.
std::string FormatRanks(absl::Span<const int> ranks);

}  // namespace hvdlite::negotiation
