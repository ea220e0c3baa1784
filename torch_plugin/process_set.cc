#include <hvdlite/process_set.h>

#include "torch_plugin/all_ranks.h"
#include "torch_plugin/world_state.h"

namespace hvdlite {

int ProcessSet::rank() const {
  return internal::CurrentWorld()->topology().rank;
}

int ProcessSet::size() const {
  return internal::CurrentWorld()->topology().size;
}

bool ProcessSet::included() const { return rank() >= 0; }

const std::vector<int>& ProcessSet::ranks() const {
  return internal::AllRanks(size());
}

ProcessSet global_process_set() { return ProcessSet(); }

}  // namespace hvdlite
