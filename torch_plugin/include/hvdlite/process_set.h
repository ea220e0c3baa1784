// ProcessSet: the ranks that take part in an operation.
#pragma once

#include <memory>
#include <vector>

namespace hvdlite {

namespace internal {
struct ProcessSetState;
}  // namespace internal

// A set of ranks; a value that is cheap to copy. A default-constructed set has
// all ranks and may be made before init(). Other sets come from
// add_process_set(). The member functions throw c10::Error before init().
//
//   const hvdlite::ProcessSet even = hvdlite::add_process_set({0, 2});
//   if (even.included()) {
//     hvdlite::broadcast_parameters(model, /*root_rank=*/0, even);
//   }
//
// Operations of different sets are independent. Those of disjoint sets run at
// the same time, and those of overlapping sets may be submitted in any order.
// An operation throws c10::Error on a rank that is not in its set.
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
  // Global ranks of the members, ascending. The reference is valid as long as
  // this ProcessSet or a copy of it exists; for the set of all ranks, as long
  // as the process runs.
  const std::vector<int>& ranks() const;

  // Null: all ranks.
  const std::shared_ptr<const internal::ProcessSetState>& state() const {
    return state_;
  }

 private:
  std::shared_ptr<const internal::ProcessSetState> state_;
};

// Returns the set of all ranks, like ProcessSet().
ProcessSet global_process_set();

// Makes a set of `ranks` (global ranks, in any order). Collective: every rank
// of the world calls it with the same `ranks`, members or not. Blocks. Sets can
// be made and removed at any time; two sets may have the same ranks. Throws
// c10::Error on every rank if `ranks` is empty, differs between callers, or has
// a rank that does not exist or is given twice; also if a rank has joined.
ProcessSet add_process_set(std::vector<int> ranks);

// Removes the set. Operations that are ready on all its members still run;
// other pending ones fail, and later ones throw. Collective: every rank of the
// world calls it. Blocks. Throws c10::Error for the set of all ranks and for a
// set that was removed before.
void remove_process_set(const ProcessSet& process_set);

}  // namespace hvdlite
