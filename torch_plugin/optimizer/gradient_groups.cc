#include "torch_plugin/optimizer/gradient_groups.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "torch_plugin/optimizer/even_split.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

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

GroupedIndices GroupParameters(const GradientGroups& groups,
                               const NamedParameters& parameters) {
  if (const auto* tensors =
          std::get_if<std::vector<std::vector<at::Tensor>>>(&groups)) {
    return GroupsOfTensors(*tensors, parameters);
  }
  const int64_t count = std::get<int64_t>(groups);
  if (count < 0) {
    ThrowError(absl::StrCat(
        "DistributedOptimizerOptions: groups is ", count,
        ", but must be 0 (each gradient by itself) or a number of groups"));
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
