// ProcessSet: the ranks that take part in an operation.
#pragma once

#include <memory>
#include <vector>

namespace hvdlite {

namespace internal {
struct ProcessSetState;
}  // namespace internal

// A value; cheap to copy. Default-constructed: all ranks, and then it may be
// made before init() (its member functions need init() to have been called, and
// throw c10::Error otherwise). Others come from add_process_set().
//
// Operations of different sets are independent: those of disjoint sets make
// progress at the same time, those of overlapping sets may be submitted in any
// order. A rank that is not in a set must not use it in an operation
// (c10::Error).
class ProcessSet {
 public:
  ProcessSet() = default;
  explicit ProcessSet(std::shared_ptr<const internal::ProcessSetState> state);

  // This process's rank within the set; -1 if it is not in it.
  int rank() const;
  // Number of ranks in the set.
  int size() const;
  // Whether this process is in the set.
  bool included() const;
  // Global ranks of the members, ascending. Valid as long as this ProcessSet or
  // a copy of it; of all ranks, for the process's lifetime.
  const std::vector<int>& ranks() const;

  // Null: all ranks.
  const std::shared_ptr<const internal::ProcessSetState>& state() const {
    return state_;
  }

 private:
  std::shared_ptr<const internal::ProcessSetState> state_;
};

// All ranks: the same as ProcessSet().
ProcessSet global_process_set();

// Makes a set of `ranks` (global ranks, in any order). Collective: every rank
// of the world calls it, members or not, with the same ranks. Blocks. Sets are
// made and removed at any time; two sets may have the same ranks. Throws
// c10::Error on every rank: no ranks, a rank that does not exist or is given
// twice, ranks that differ among callers, a rank that has joined.
ProcessSet add_process_set(std::vector<int> ranks);

// Ends the set: operations that are ready on all its members still run, others
// that are pending in it fail, and later ones are refused. Collective: every
// rank of the world calls it. Blocks. Throws c10::Error: the set of all ranks,
// a set that was removed before.
void remove_process_set(const ProcessSet& process_set);

}  // namespace hvdlite
