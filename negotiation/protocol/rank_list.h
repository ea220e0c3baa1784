// Ranks as people read them, and as few numbers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hvdlite::negotiation {

// A set of ranks as runs of neighbours: small where ranks that belong together
// have numbers that follow one another, however many they are.
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
  // Ranks that are counted, but not named. None of them is named as well.
  void AddUnnamed(int ranks) { unnamed_ += ranks; }
  // Names no more than the lowest runs.
  void Truncate(size_t max_runs);

  int size() const;  // with those that are not named
  int unnamed() const { return unnamed_; }
  bool empty() const { return size() == 0; }
  bool Contains(int rank) const;
  absl::Span<const Run> runs() const { return runs_; }  // ascending, apart
  // The lowest that are named, at most `count`, ascending.
  std::vector<int> Lowest(size_t count) const;

  // "rank 3", "ranks 0-2, 5", "ranks 0-2, 5 and 9 more". Not empty.
  std::string ToString() const;

 private:
  void Normalize();

  std::vector<Run> runs_;
  int unnamed_ = 0;
};

// "rank 3", "ranks 0-2, 5". `ranks` is not empty, in any order.
std::string FormatRanks(absl::Span<const int> ranks);

}  // namespace hvdlite::negotiation
