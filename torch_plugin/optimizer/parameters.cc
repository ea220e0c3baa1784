#include "torch_plugin/optimizer/parameters.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "torch_plugin/ops/tensors.h"
#include "torch_plugin/optimizer/even_split.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

// Finds where the optimizer has each of its parameters: "parameter 1 of group 0
// (shape [3, 4])".
std::map<const void*, std::string> PlacesIn(
    const torch::optim::Optimizer& optimizer) {
  std::map<const void*, std::string> places;
  for (size_t group = 0; group < optimizer.param_groups().size(); ++group) {
    const auto& parameters = optimizer.param_groups()[group].params();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const std::string place =
          absl::StrCat("parameter ", i, " of group ", group, " (shape [",
                       absl::StrJoin(parameters[i].sizes(), ", "), "])");
      const auto [known, inserted] =
          places.emplace(parameters[i].unsafeGetTensorImpl(), place);
      if (!inserted) {
        ThrowError(absl::StrCat(
            "DistributedOptimizer: the wrapped optimizer has one tensor twice: "
            "as ",
            known->second, " and as ", place));
      }
    }
  }
  return places;
}

// Integers and flags never have a gradient, so there is nothing to reduce.
bool HasNoGradientEver(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_floating_point() &&
         !tensor.is_complex();
}

GroupedIndices GroupsOfTensors(
    const std::vector<std::vector<at::Tensor>>& groups,
    const NamedParameters& parameters) {
  std::map<const void*, size_t> indices;
  for (size_t i = 0; i < parameters.size(); ++i) {
    indices.emplace(parameters[i].second.unsafeGetTensorImpl(), i);
  }
  GroupedIndices result;
  std::map<size_t, size_t> group_of;
  for (size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].empty()) {
      ThrowError(absl::StrCat("DistributedOptimizerOptions: group ", group,
                              " of groups has no parameters; leave it out"));
    }
    std::vector<size_t>& members = result.emplace_back();
    for (size_t i = 0; i < groups[group].size(); ++i) {
      const at::Tensor& tensor = groups[group][i];
      const auto known = indices.find(tensor.unsafeGetTensorImpl());
      if (!tensor.defined() || known == indices.end()) {
        ThrowError(absl::StrCat(
            "DistributedOptimizerOptions: tensor ", i, " of group ", group,
            tensor.defined()
                ? absl::StrCat(" (shape [", absl::StrJoin(tensor.sizes(), ", "),
                               "])")
                : " (undefined)",
            " of groups is not a parameter of the wrapped optimizer"));
      }
      const auto [earlier, inserted] = group_of.emplace(known->second, group);
      if (!inserted) {
        ThrowError(absl::StrCat("DistributedOptimizerOptions: parameter '",
                                parameters[known->second].first,
                                "' is in groups twice, in group ",
                                earlier->second, " and in group ", group));
      }
      members.push_back(known->second);
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!group_of.contains(i)) result.push_back({i});
  }
  return result;
}

}  // namespace

NamedParameters ParametersOf(
    const torch::optim::Optimizer& optimizer,
    const torch::OrderedDict<std::string, at::Tensor>& named_parameters) {
  const std::map<const void*, std::string> places = PlacesIn(optimizer);
  NamedParameters result;
  std::map<const void*, std::string> names;
  for (const auto& item : named_parameters) {
    const void* tensor = item.value().unsafeGetTensorImpl();
    if (!places.contains(tensor)) continue;
    const auto [known, inserted] = names.emplace(tensor, item.key());
    if (!inserted) {
      ThrowError(absl::StrCat(
          "DistributedOptimizer: named_parameters has one tensor under two "
          "names, '",
          known->second, "' and '", item.key(),
          "'; leave one out (for shared weights, the later one)"));
    }
    if (HasNoGradientEver(item.value())) continue;
    CheckTensor(item.value(), absl::StrCat("DistributedOptimizer: parameter '",
                                           item.key(), "'"));
    result.emplace_back(item.key(), item.value());
  }
  for (const auto& [tensor, place] : places) {
    if (!names.contains(tensor)) {
      ThrowError(absl::StrCat(
          "DistributedOptimizer: ", place,
          " of the wrapped optimizer is not in named_parameters, so its "
          "gradient would not be reduced; pass named_parameters() of the model "
          "that the optimizer was constructed with"));
    }
  }
  return result;
}

GroupedIndices GroupParameters(const GradientGroups& groups,
                               const NamedParameters& parameters) {
  if (const auto* tensors =
          std::get_if<std::vector<std::vector<at::Tensor>>>(&groups)) {
    return GroupsOfTensors(*tensors, parameters);
  }
  const int64_t count = std::get<int64_t>(groups);
  if (count < 0) {
    ThrowError(
        absl::StrCat("DistributedOptimizerOptions: groups is ", count,
                     ", but must be 0 (no groups) or a number of groups"));
  }
  std::vector<int64_t> sizes_bytes;
  for (const auto& [name, tensor] : parameters) {
    sizes_bytes.push_back(static_cast<int64_t>(tensor.nbytes()));
  }
  return SplitEvenly(sizes_bytes, count == 0
                                      ? static_cast<int64_t>(parameters.size())
                                      : count);
}

}  // namespace hvdlite::internal
