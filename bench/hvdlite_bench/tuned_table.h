// The part of tune-table that does not need MPI: the candidates for a bucket,
// the choice by measured times, and the rows of an AllreduceTable for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collective/shm/allreduce_table.h"

namespace hvdlite::tools {

// The world that rows of a table apply to.
struct TableWorld {
  int nodes = 1;
  int ranks_per_node = 2;  // on the smallest node, but at least 2
};

// Returns the world of ranks on these nodes. Throws std::invalid_argument if
// there is no choice: a single rank, or nodes with one rank each.
TableWorld WorldOf(const std::vector<int>& node_of_rank);

// A way to reduce buckets of `min_bytes` to `max_bytes`. For other sizes it is
// known to be slow, or equal to another candidate. One-shot's chunk is the
// whole bucket.
struct Candidate {
  collective::AllreduceChoice choice;
  int64_t min_bytes = 0;
  int64_t max_bytes = 0;

  bool Fits(int64_t bytes) const {
    return min_bytes <= bytes && bytes <= max_bytes;
  }
  std::string name() const;  // "two-shot_512K"
};

// Returns the candidates for this world. The first one fits buckets of every
// size.
std::vector<Candidate> CandidatesFor(const TableWorld& world);

// Returns the candidate that corresponds to `choice` for buckets of `bytes`;
// -1: none.
int FindCandidate(const std::vector<Candidate>& candidates,
                  const collective::AllreduceChoice& choice, int64_t bytes);

// A bucket size, and the times of each candidate by round; empty if the
// candidate was not measured at this size.
struct MeasuredSize {
  int64_t bytes = 0;
  std::vector<std::vector<double>> times;
};

// Returns the candidate for each size, in ascending order of size. The smallest
// size gets the candidate with the smallest median. A larger size keeps the
// previous candidate, unless another one is clearly faster at this size and at
// the next: the median of the ratios of their times by round is 0.95 or less,
// and its 95 % interval lies below 1. Among several such candidates, the one
// with the smallest median wins.
//
// If the previous candidate does not fit this size, the smallest median decides
// again. If it does not fit the next size, a clear win at this size is enough.
std::vector<size_t> ChooseByTimes(const std::vector<MeasuredSize>& sizes);

// Returns a line for AllreduceTable; INT64_MAX becomes "inf".
std::string TableRow(const TableWorld& world, const Candidate& candidate,
                     int64_t up_to_bytes);

// Returns rows for AllreduceTable below `header`, whose lines become comments.
// Successive sizes with the same choice share a row, and the last row also
// covers the largest buckets.
std::string TableSection(const TableWorld& world,
                         const std::vector<Candidate>& candidates,
                         const std::vector<MeasuredSize>& sizes,
                         const std::vector<size_t>& chosen,
                         absl::string_view header);

// Returns `table`, the text of a table or an empty text, with `section` instead
// of its rows for exactly this world. The section comes first, since the first
// matching row decides and other rows may cover ranges of worlds. A paragraph
// that loses its last row is removed with its comments. Returns InvalidArgument
// if `table` or the result is not a table.
absl::StatusOr<std::string> WithSection(absl::string_view table,
                                        const TableWorld& world,
                                        absl::string_view section);

// True if `table`, the text of a table or an empty text, has rows for exactly
// this world.
bool HasSection(absl::string_view table, const TableWorld& world);

// The place of a rank. Hosts that share a machine (dev/testbed) share its
// cores.
struct RankPlace {
  int machine = 0;
  std::string host;
  std::vector<int> cores;  // allowed cores
};

// Returns for example "3 ranks, 1 host (node7), 2 cores, oversubscribed". The
// last word appears if a machine has more ranks than its ranks have cores.
std::string DescribePlaces(const std::vector<RankPlace>& places);

// The CPU use of a rank and of its machine during the measurement.
struct RankWork {
  double seconds = 0;  // duration
  double process = 0;  // CPU seconds
  double machine = 0;  // CPU seconds; 0: unknown to the kernel
  int cpus = 1;        // number of CPUs of the machine
};

// Describes other programs on the machine where their share is largest: "0.40
// of 2 CPUs: busy"; "" if no kernel reports it. The arguments have one element
// per rank.
std::string DescribeOthers(const std::vector<RankPlace>& places,
                           const std::vector<RankWork>& work);

}  // namespace hvdlite::tools
