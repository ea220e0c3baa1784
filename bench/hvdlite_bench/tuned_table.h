// tune-table's part without MPI: what may be chosen for a batch, the choice by
// measured times, and the rows of an AllreduceTable that say so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collective/shm/allreduce_table.h"

namespace hvdlite::tools {

// The world that rows of a table are for.
struct TableWorld {
  int nodes = 1;
  int ranks_per_node = 2;  // of the smallest node, but 2 at least
};

// The world of ranks on these nodes. Throws std::invalid_argument where there
// is nothing to choose: a single rank, or nodes of one rank each.
TableWorld WorldOf(const std::vector<int>& node_of_rank);

// What batches may be reduced by, from `min_bytes` up to `max_bytes`. Outside
// it is known to be no good, or the same as another one. One-shot's chunk is
// the batch.
struct Candidate {
  collective::AllreduceChoice choice;
  int64_t min_bytes = 0;
  int64_t max_bytes = 0;

  bool Fits(int64_t bytes) const {
    return min_bytes <= bytes && bytes <= max_bytes;
  }
  std::string name() const;  // "two-shot 512K"
};

// For this world. The first one takes batches of every size.
std::vector<Candidate> CandidatesFor(const TableWorld& world);

// The candidate that stands for `choice` in batches of `bytes`; -1: none.
int FindCandidate(const std::vector<Candidate>& candidates,
                  const collective::AllreduceChoice& choice, int64_t bytes);

// A size of batches, and the times of each candidate, round by round; none if
// it was not measured at this size.
struct MeasuredSize {
  int64_t bytes = 0;
  std::vector<std::vector<double>> times;
};

// The candidate for each size, from the smallest on. The smallest gets the one
// with the smallest median. A larger size keeps what the one before it has,
// unless another candidate is clearly faster at this size and at the next: the
// median of the ratios of their times, round by round, is 0.95 or less, and its
// 95 % interval lies below 1. Of several such the one with the smallest median
// is taken. Where the kept candidate does not fit any more, the smallest median
// decides again; where it will not fit the next size, this one is enough.
std::vector<size_t> ChooseByTimes(const std::vector<MeasuredSize>& sizes);

// A line for AllreduceTable; INT64_MAX is "inf".
std::string TableRow(const TableWorld& world, const Candidate& candidate,
                     int64_t up_to_bytes);

// Rows for AllreduceTable, below `header`, whose lines become comments:
// successive sizes with one choice share a row, and the last one goes on to the
// largest batches.
std::string TableSection(const TableWorld& world,
                         const std::vector<Candidate>& candidates,
                         const std::vector<MeasuredSize>& sizes,
                         const std::vector<size_t>& chosen,
                         absl::string_view header);

// `table`, the text of a table or nothing, with `section` instead of its rows
// for exactly this world. The section comes first, since the first row that
// fits decides and other rows may be for ranges of worlds. A paragraph that is
// left without rows goes, comments and all. InvalidArgument if `table` or the
// result is none.
absl::StatusOr<std::string> WithSection(absl::string_view table,
                                        const TableWorld& world,
                                        absl::string_view section);

// Whether `table`, the text of a table or nothing, has rows for exactly this
// world.
bool HasSection(absl::string_view table, const TableWorld& world);

// Where a rank runs. Hosts that share a machine (dev/testbed) share its
// cores.
struct RankPlace {
  int machine = 0;
  std::string host;
  std::vector<int> cores;  // that it may use
};

// "3 ranks, 1 host (node7), 2 cores, oversubscribed": the latter where a
// machine has more ranks than its ranks have cores.
std::string DescribePlaces(const std::vector<RankPlace>& places);

// What a rank, and the CPUs of its machine, have worked while it measured.
struct RankWork {
  double seconds = 0;  // that it took
  double process = 0;  // CPU seconds
  double machine = 0;  // 0: the kernel does not tell
  int cpus = 1;        // of the machine
};

// Other programs on the machine where they took the largest share: "0.40 of 2
// CPUs: busy"; "" where no kernel tells. Of each rank, in the same order.
std::string DescribeOthers(const std::vector<RankPlace>& places,
                           const std::vector<RankWork>& work);

}  // namespace hvdlite::tools
