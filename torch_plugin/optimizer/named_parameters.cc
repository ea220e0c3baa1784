#include "torch_plugin/optimizer/named_parameters.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "torch_plugin/ops/tensor_checks.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

// Where the optimizer has each of its parameters: "parameter 1 of group 0
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

// Integers and flags never have a gradient: there is nothing to reduce.
bool HasNoGradientEver(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_floating_point() &&
         !tensor.is_complex();
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
          " of the wrapped optimizer is not in named_parameters, so that its "
          "gradient would not be reduced; pass named_parameters() of the model "
          "that the optimizer was constructed with"));
    }
  }
  return result;
}

}  // namespace hvdlite::internal
