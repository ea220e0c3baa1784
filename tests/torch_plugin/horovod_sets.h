// The process sets that Horovod's own tests use.
#pragma once

#include <hvdlite/process_set.h>
#include <hvdlite/world.h>

#include <vector>

namespace hvdlite {

// Calls run(set) with the even ranks on these, and at the same time with the
// odd ranks on those. Collective.
template <typename Run>
void ByParity(Run run) {
  std::vector<int> ranks[2];
  for (int i = 0; i < size(); ++i) ranks[i % 2].push_back(i);
  const ProcessSet even = add_process_set(ranks[0]);
  // A set needs a rank, and one rank alone is even.
  const ProcessSet odd = size() > 1 ? add_process_set(ranks[1]) : even;
  run(even.included() ? even : odd);
  if (size() > 1) remove_process_set(odd);
  remove_process_set(even);
}

// Calls run(set) with all ranks, then by parity.
template <typename Run>
void ForAllRanksAndByParity(Run run) {
  run(ProcessSet());
  ByParity(run);
}

}  // namespace hvdlite
