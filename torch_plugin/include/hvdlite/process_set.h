// ProcessSet: the ranks that take part in an operation.
#pragma once

#include <vector>

namespace hvdlite {

// A value; cheap to copy. Default-constructed: all ranks, and then it may be
// made before init() (its member functions need init() to have been called, and
// throw c10::Error otherwise).
class ProcessSet {
 public:
  ProcessSet() = default;

  // This process's rank within the set; -1 if it is not in it.
  int rank() const;
  // Number of ranks in the set.
  int size() const;
  // Whether this process is in the set.
  bool included() const;
  // Global ranks of the members, ascending. Valid for the process's lifetime.
  const std::vector<int>& ranks() const;
};

// All ranks: the same as ProcessSet().
ProcessSet global_process_set();

}  // namespace hvdlite
