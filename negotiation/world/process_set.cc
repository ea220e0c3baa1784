#include "negotiation/world/process_set.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "negotiation/protocol/rank_list.h"

namespace hvdlite::internal {
namespace {

constexpr char kInSet[] = "@process_set.";

std::string Describe(const ProcessSetState& set) {
  return absl::StrCat(negotiation::FormatRanks(set.ranks), " (process set ",
                      set.id, ")");
}

// Never destroyed, so that the order of static destruction does not matter.
struct RankLists {
  base::Mutex mutex;
  std::deque<std::vector<int>> lists ABSL_GUARDED_BY(mutex);
};

}  // namespace

const std::vector<int>& AllRanks(int size) {
  static auto* const lists = new RankLists;
  base::MutexLock lock(&lists->mutex);
  for (const std::vector<int>& ranks : lists->lists) {
    if (std::cmp_equal(ranks.size(), size)) return ranks;
  }
  std::vector<int>& ranks =
      lists->lists.emplace_back(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

bool Members::contains(int global_rank) const {
  return absl::c_binary_search(ranks, global_rank);
}

std::string Members::Describe() const {
  if (state != nullptr) return internal::Describe(*state);
  return size() == 1 ? "the world's only rank, 0"
                     : absl::StrCat("the world's ranks 0 to ", size() - 1);
}

absl::StatusOr<Members> MembersOf(
    const World& world, const std::shared_ptr<const ProcessSetState>& state,
    absl::string_view what) {
  const int rank = world.topology().rank;
  if (state == nullptr) {
    return Members{.id = 0,
                   .ranks = AllRanks(world.topology().size),
                   .rank = rank,
                   .state = nullptr};
  }
  if (state->world.lock().get() != &world) {
    return absl::FailedPreconditionError(
        absl::StrCat(what,
                     ": the process set was added before the last "
                     "hvdlite::init(); add it again"));
  }
  if (state->removed) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, ": the process set was removed: ", Describe(*state)));
  }
  const auto place = absl::c_lower_bound(state->ranks, rank);
  if (place == state->ranks.end() || *place != rank) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, ": rank ", rank, " is not in the process set: ", Describe(*state),
        "; call it on these ranks only"));
  }
  return Members{.id = state->id,
                 .ranks = state->ranks,
                 .rank = static_cast<int>(place - state->ranks.begin()),
                 .state = state};
}

std::string NameInSet(std::string name, negotiation::ProcessSetId id) {
  if (id != 0) absl::StrAppend(&name, kInSet, id);
  return name;
}

absl::Status CheckName(const std::string& name, absl::string_view what) {
  if (!absl::StrContains(name, kInSet)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": the name '", name, "' contains '", kInSet,
                   "', which is reserved; choose another name"));
}

}  // namespace hvdlite::internal
