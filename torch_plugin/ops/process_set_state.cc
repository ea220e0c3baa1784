#include "torch_plugin/ops/process_set_state.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "negotiation/protocol/rank_list.h"
#include "torch_plugin/ops/all_ranks.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

constexpr char kInSet[] = "@process_set.";

std::string Describe(const ProcessSetState& set) {
  return absl::StrCat(negotiation::FormatRanks(set.ranks), " (process set ",
                      set.id, ")");
}

}  // namespace

bool Members::contains(int global_rank) const {
  return absl::c_binary_search(ranks, global_rank);
}

std::string Members::Describe() const {
  if (state != nullptr) return internal::Describe(*state);
  return size() == 1 ? "the world's only rank, 0"
                     : absl::StrCat("the world's ranks 0 to ", size() - 1);
}

Members MembersOf(const World& world, const ProcessSet& process_set,
                  absl::string_view what) {
  const int rank = world.topology().rank;
  const auto& state = process_set.state();
  if (state == nullptr) {
    return {.id = 0,
            .ranks = AllRanks(world.topology().size),
            .rank = rank,
            .state = nullptr};
  }
  if (state->world.lock().get() != &world) {
    ThrowError(absl::StrCat(what,
                            ": the process set was added before the last "
                            "hvdlite::init(); add it again"));
  }
  if (state->removed) {
    ThrowError(absl::StrCat(
        what, ": the process set was removed: ", Describe(*state)));
  }
  const auto place = absl::c_lower_bound(state->ranks, rank);
  if (place == state->ranks.end() || *place != rank) {
    ThrowError(absl::StrCat(what, ": rank ", rank,
                            " is not in the process set: ", Describe(*state),
                            "; call it on these ranks only"));
  }
  return {.id = state->id,
          .ranks = state->ranks,
          .rank = static_cast<int>(place - state->ranks.begin()),
          .state = state};
}

std::string NameInSet(std::string name, negotiation::ProcessSetId id) {
  if (id != 0) absl::StrAppend(&name, kInSet, id);
  return name;
}

void CheckName(const std::string& name, absl::string_view what) {
  if (!absl::StrContains(name, kInSet)) return;
  ThrowError(absl::StrCat(what, ": the name '", name, "' contains '", kInSet,
                          "', which is reserved; choose another name"));
}

}  // namespace hvdlite::internal
