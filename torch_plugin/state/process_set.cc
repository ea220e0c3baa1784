#include <hvdlite/process_set.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "negotiation/world/world_state.h"
#include "torch_plugin/ops/all_ranks.h"
#include "torch_plugin/ops/operation_call.h"
#include "torch_plugin/ops/process_set_state.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace {

// Why there is no process set of `ranks`, which ascend; empty if there can be.
std::string RanksRefusal(const std::vector<int>& ranks, int world_size) {
  if (ranks.empty()) return "a process set needs at least one rank";
  for (const int rank : ranks) {
    if (rank < 0 || rank >= world_size) {
      return absl::StrCat("rank ", rank,
                          " does not exist; the world has ranks 0 to ",
                          world_size - 1);
    }
  }
  const auto twice = absl::c_adjacent_find(ranks);
  if (twice != ranks.end()) {
    return absl::StrCat("rank ", *twice, " is given twice");
  }
  return "";
}

}  // namespace

ProcessSet::ProcessSet(std::shared_ptr<const internal::ProcessSetState> state)
    : state_(std::move(state)) {}

int ProcessSet::rank() const {
  const int rank = internal::CurrentWorld()->topology().rank;
  if (state_ == nullptr) return rank;
  const auto place = absl::c_lower_bound(state_->ranks, rank);
  if (place == state_->ranks.end() || *place != rank) return -1;
  return static_cast<int>(place - state_->ranks.begin());
}

int ProcessSet::size() const { return static_cast<int>(ranks().size()); }

bool ProcessSet::included() const { return rank() >= 0; }

const std::vector<int>& ProcessSet::ranks() const {
  const int world_size = internal::CurrentWorld()->topology().size;
  return state_ == nullptr ? internal::AllRanks(world_size) : state_->ranks;
}

ProcessSet global_process_set() { return ProcessSet(); }

ProcessSet add_process_set(std::vector<int> ranks) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  internal::OperationCall call("add_process_set", /*name=*/"", ProcessSet());
  absl::c_sort(ranks);
  call.request().collective = negotiation::Collective::kAddProcessSet;
  call.Refuse(RanksRefusal(ranks, world->topology().size));
  call.request().members = ranks;
  const auto operation = call.Run();
  auto state = std::make_shared<internal::ProcessSetState>();
  state->id = static_cast<negotiation::ProcessSetId>(operation->value());
  state->ranks = std::move(ranks);
  state->world = world;
  return ProcessSet(std::move(state));
}

void remove_process_set(const ProcessSet& process_set) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  internal::OperationCall call("remove_process_set", /*name=*/"", ProcessSet());
  call.request().collective = negotiation::Collective::kRemoveProcessSet;
  const auto& state = process_set.state();
  if (state == nullptr) {
    call.Refuse("the set of all ranks cannot be removed");
  } else if (state->world.lock() != world) {
    call.Refuse("the process set was added before the last hvdlite::init()");
  } else if (state->removed) {
    call.Refuse(
        absl::StrCat("process set ", state->id, " has been removed before"));
  } else {
    call.request().removed = state->id;
  }
  call.Run();
  state->removed = true;
}

}  // namespace hvdlite
