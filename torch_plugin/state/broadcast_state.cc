#include <hvdlite/broadcast_state.h>
#include <hvdlite/distributed_optimizer.h>
#include <hvdlite/errors.h>
#include <hvdlite/ops.h>
#include <hvdlite/world.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "negotiation/world/process_set.h"
#include "negotiation/world/world.h"
#include "torch_plugin/ops/operation_call.h"
#include "torch_plugin/ops/tensors.h"
#include "torch_plugin/state/archives.h"
#include "torch_plugin/state/copy_to.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace {

// Names of operations with their tensors, in the same order on all ranks.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

void Append(NamedTensors& tensors, const std::string& prefix,
            const torch::OrderedDict<std::string, at::Tensor>& more) {
  for (const auto& item : more) {
    if (item.value().defined()) {
      tensors.emplace_back(prefix + item.key(), item.value());
    }
  }
}

// Returns the names in `lines`. The first line is their number.
std::set<std::string> NamesIn(const std::string& lines) {
  const std::vector<std::string> parts =
      absl::StrSplit(lines, '\n', absl::SkipEmpty());
  return {parts.begin() + 1, parts.end()};
}

// Throws the same error on every rank unless all have tensors with the same
// names. Ranks that have joined have no tensors and do not count.
void CheckThatNamesAgree(const NamedTensors& tensors,
                         const ProcessSet& process_set) {
  constexpr char kCall[] = "broadcast_parameters";
  const auto gather = [&](const char* what, const std::string& text) {
    return internal::AllgatherObject(absl::StrCat(kCall, ": ", what), text,
                                     process_set);
  };
  std::string lines = absl::StrCat(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    absl::StrAppend(&lines, "\n", name);
  }
  // Compare hashes first: names are long and nearly always the same.
  const std::vector<std::string> fingerprints = gather(
      "number and hash of names",
      absl::StrCat(tensors.size(), " ", std::hash<std::string>()(lines)));
  if (std::set<std::string>(fingerprints.begin(), fingerprints.end()).size() ==
      1) {
    return;
  }
  const std::vector<std::string> all = gather("names", lines);
  size_t first = all.size();  // the first rank that has not joined
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) continue;
    if (first == all.size()) first = i;
    const std::set<std::string> expected = NamesIn(all[first]);
    const std::set<std::string> names = NamesIn(all[i]);
    std::vector<std::string> missing;
    std::vector<std::string> added;
    absl::c_set_difference(expected, names, std::back_inserter(missing));
    absl::c_set_difference(names, expected, std::back_inserter(added));
    if (missing.empty() && added.empty()) continue;
    const auto describe = [&](size_t rank, size_t count) {
      return absl::StrCat("rank ", process_set.ranks()[rank], " (", count,
                          " tensors)");
    };
    const std::string one = describe(first, expected.size());
    const std::string other = describe(i, names.size());
    const bool lacks = !missing.empty();
    internal::ThrowError(
        absl::StrCat(kCall, ": the ranks' models differ: tensor '",
                     lacks ? missing.front() : added.front(), "' is on ",
                     lacks ? one : other, ", but not on ", lacks ? other : one,
                     "; construct the same model on every rank"));
  }
}

// Returns the tensor to broadcast for `tensor`: the same one, or a copy if its
// elements share memory, as those of expand() do.
at::Tensor Sent(const at::Tensor& tensor) {
  if (!internal::TensorError(tensor).empty()) return tensor;
  return internal::OverlapInMemory(tensor)
             ? tensor.detach().clone(at::MemoryFormat::Contiguous)
             : tensor;
}

// Submits all broadcasts, also after an error, and then waits for all, so that
// they are fused. Nothing is in flight when it throws.
void BroadcastAll(const NamedTensors& tensors, int root_rank,
                  const ProcessSet& process_set) {
  CheckThatNamesAgree(tensors, process_set);
  struct Broadcast {
    const std::string& name;
    const at::Tensor& tensor;
    at::Tensor sent;
    Work work;
  };
  std::vector<Broadcast> broadcasts;
  std::exception_ptr first_error;
  for (const auto& [name, tensor] : tensors) {
    try {
      const at::Tensor sent = Sent(tensor);
      Work work = broadcast_async_(
          sent, root_rank,
          BroadcastOptions().name(name).process_set(process_set));
      broadcasts.push_back({name, tensor, sent, std::move(work)});
    } catch (...) {
      if (first_error == nullptr) first_error = std::current_exception();
    }
  }
  // Wait for the last one first: this marks the others as awaited, too.
  std::exception_ptr first_failure;
  for (size_t i = broadcasts.size(); i-- > 0;) {
    const auto& [name, tensor, sent, work] = broadcasts[i];
    try {
      work.wait();
      if (sent.is_same(tensor)) continue;
      const absl::Status copied = internal::StatusOfOperation(
          [&] { internal::CopyTo(tensor, sent); });
      if (!copied.ok()) {
        internal::ThrowError(absl::StrCat("'", name, "': ", copied.message()));
      }
    } catch (...) {
      first_failure = std::current_exception();
    }
  }
  if (first_error == nullptr) first_error = first_failure;
  if (first_error != nullptr) std::rethrow_exception(first_error);
}

// Describes type and parameter shapes, which two optimizers need in common to
// exchange their state: "torch::optim::SGD with parameter groups ([2, 3], [3])
// ([4])".
std::string Describe(const torch::optim::Optimizer& optimizer) {
  std::string result =
      absl::StrCat(internal::KindOf(optimizer), " with parameter groups");
  for (const auto& group : optimizer.param_groups()) {
    std::vector<std::string> shapes;
    for (const at::Tensor& parameter : group.params()) {
      shapes.push_back(
          absl::StrCat("[", absl::StrJoin(parameter.sizes(), ", "), "]"));
    }
    absl::StrAppend(&result, " (", absl::StrJoin(shapes, ", "), ")");
  }
  return result;
}

// Serialises optimizers with LibTorch's archives. Throws what LibTorch throws.
constexpr char kBroadcastKey[] = "optimizer";

std::string Serialized(torch::optim::Optimizer& optimizer) {
  return internal::ValueOrThrow(internal::Serialise(
      "the optimizer", [&](torch::serialize::OutputArchive& archive) {
        internal::WriteOptimizer(archive, kBroadcastKey, optimizer);
      }));
}

void Load(const std::string& archive_bytes,
          torch::optim::Optimizer& optimizer) {
  torch::serialize::InputArchive archive;
  archive.load_from(archive_bytes.data(), archive_bytes.size());
  internal::ReadOptimizer(archive, kBroadcastKey, /*with_options=*/true,
                          optimizer);
}

constexpr char kWhat[] = "broadcast_optimizer_state";

// Throws the same error on every rank if any of the `problems` (one per rank,
// in the order of `ranks`) is not empty.
void ThrowFirst(const std::vector<std::string>& problems,
                const std::vector<int>& ranks) {
  for (size_t i = 0; i < problems.size(); ++i) {
    if (problems[i].empty()) continue;
    internal::ThrowError(
        absl::StrCat(kWhat, ": rank ", ranks[i], " ", problems[i]));
  }
}

template <typename Call>
std::string ProblemOf(const std::string& what, Call&& call) {
  try {
    call();
    return "";
  } catch (const std::exception& error) {
    return absl::StrCat(what, ": ", internal::TextOf(error));
  }
}

// Throws the same error on every rank unless all ranks' descriptions are equal.
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

void broadcast_parameters(const torch::nn::Module& module, int root_rank,
                          const ProcessSet& process_set) {
  NamedTensors tensors;
  Append(tensors, "broadcast_parameters.", module.named_parameters());
  Append(tensors, "broadcast_parameters.buffer.", module.named_buffers());
  BroadcastAll(tensors, root_rank, process_set);
}

void broadcast_parameters(
    const torch::OrderedDict<std::string, at::Tensor>& tensors, int root_rank,
    const ProcessSet& process_set) {
  NamedTensors named;
  Append(named, "broadcast_parameters.", tensors);
  BroadcastAll(named, root_rank, process_set);
}

void broadcast_optimizer_state(torch::optim::Optimizer& optimizer,
                               int root_rank, const ProcessSet& process_set) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  const internal::Members members = internal::ValueOrThrow(
      internal::MembersOf(*world, process_set.state(), kWhat));
  CheckThatAllAgree(
      absl::StrCat(Describe(optimizer), ", root_rank ", root_rank),
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
                        [&] { archive = Serialized(optimizer); });
  }
  ThrowFirst(allgather_object(problem, process_set), process_set.ranks());
  archive = broadcast_object(archive, root_rank, process_set);
  if (!is_root) {
    problem =
        ProblemOf(absl::StrCat("cannot load the optimizer of rank ", root_rank),
                  [&] { Load(archive, optimizer); });
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
