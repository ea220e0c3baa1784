#include <hvdlite/broadcast_state.h>
#include <hvdlite/distributed_optimizer.h>
#include <hvdlite/ops.h>

#include <exception>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "negotiation/world/world_state.h"
#include "torch_plugin/ops/process_set_state.h"
#include "torch_plugin/state/optimizer_archive.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace {

constexpr char kWhat[] = "broadcast_optimizer_state";

// Throws the same on every rank if on some `problems` (one per rank, in the
// order of `ranks`) is not empty.
void ThrowFirst(const std::vector<std::string>& problems,
                const std::vector<int>& ranks) {
  for (size_t i = 0; i < problems.size(); ++i) {
    if (problems[i].empty()) continue;
    internal::ThrowError(
        absl::StrCat(kWhat, ": rank ", ranks[i], " ", problems[i]));
  }
}

// Of an error in LibTorch, which adds its stack trace otherwise.
template <typename Call>
std::string ProblemOf(const std::string& what, Call&& call) {
  try {
    call();
    return "";
  } catch (const c10::Error& error) {
    return absl::StrCat(what, ": ", error.what_without_backtrace());
  } catch (const std::exception& error) {
    return absl::StrCat(what, ": ", error.what());
  }
}

// Throws the same on every rank unless all ranks' descriptions are equal.
void CheckThatAllAgree(const std::string& description,
                       const ProcessSet& process_set) {
  const std::vector<std::string> all =
      allgather_object(description, process_set);
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i] == all.front()) continue;
    internal::ThrowError(absl::StrCat(
        kWhat, ": the ranks' optimizers differ: rank ",
        process_set.ranks().front(), " has ", all.front(), ", but rank ",
        process_set.ranks()[i], " has ", all[i],
        "; construct the same optimizer, with the same parameter groups, on "
        "every rank"));
  }
}

}  // namespace

void broadcast_optimizer_state(torch::optim::Optimizer& optimizer,
                               int root_rank, const ProcessSet& process_set) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  const internal::Members members =
      internal::MembersOf(*world, process_set, kWhat);
  CheckThatAllAgree(
      absl::StrCat(internal::Describe(optimizer), ", root_rank ", root_rank),
      process_set);
  if (!members.contains(root_rank)) {
    internal::ThrowError(absl::StrCat(kWhat, ": root_rank ", root_rank,
                                      " is not in ", members.Describe()));
  }
  const bool is_root = world->topology().rank == root_rank;
  std::string archive;
  std::string problem;
  if (is_root) {
    problem = ProblemOf("cannot serialize its optimizer",
                        [&] { archive = internal::Serialized(optimizer); });
  }
  ThrowFirst(allgather_object(problem, process_set), process_set.ranks());
  archive = broadcast_object(archive, root_rank, process_set);
  if (!is_root) {
    problem =
        ProblemOf(absl::StrCat("cannot load the optimizer of rank ", root_rank),
                  [&] { internal::Load(archive, optimizer); });
  }
  ThrowFirst(allgather_object(problem, process_set), process_set.ranks());
}

void broadcast_optimizer_state(DistributedOptimizer& optimizer, int root_rank,
                               const ProcessSet& process_set) {
  const bool is_default = process_set.state() == nullptr;
  broadcast_optimizer_state(optimizer.inner(), root_rank,
                            is_default ? optimizer.process_set() : process_set);
}

}  // namespace hvdlite
