#include "torch_plugin/optimizer/optimizer_options.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "torch_plugin/ops/process_set_state.h"
#include "torch_plugin/ops/tensor_checks.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

constexpr char kWhat[] = "DistributedOptimizerOptions";

// The op, compression and scales with which gradients are reduced.
AllreduceOptions AllreduceOptionsOf(
    const DistributedOptimizerOptions& options) {
  if (options.op() != ReduceOp::Average && options.op() != ReduceOp::Sum &&
      options.op() != ReduceOp::Adasum) {
    ThrowError(absl::StrCat(kWhat, ": op ", NameOf(options.op()),
                            " is not supported for gradients; use Average, Sum "
                            "or Adasum"));
  }
  const double predivide = options.gradient_predivide_factor();
  if (!(predivide > 0) || !std::isfinite(predivide) ||
      !std::isfinite(1.0 / predivide)) {
    ThrowError(absl::StrCat(kWhat, ": gradient_predivide_factor is ", predivide,
                            ", but must be a finite number greater than 0"));
  }
  if (predivide != 1.0 && options.op() != ReduceOp::Average) {
    ThrowError(absl::StrCat(kWhat,
                            ": gradient_predivide_factor is for op Average "
                            "only, but op is ",
                            NameOf(options.op())));
  }
  return AllreduceOptions()
      .op(options.op())
      .prescale_factor(1.0 / predivide)
      .postscale_factor(predivide)
      .compression(options.compression())
      .process_set(options.process_set());
}

}  // namespace

std::string NamePrefix(World& world,
                       const DistributedOptimizerOptions& options) {
  const Members members =
      MembersOf(world, options.process_set(), "DistributedOptimizer");
  if (!options.name().empty()) {
    CheckName(options.name(), "DistributedOptimizer");
    return options.name();
  }
  return absl::StrReplaceAll(world.NextName("optimizer", members.id),
                             {{".noname.", ""}});
}

GradientReducerOptions ReducerOptions(
    std::shared_ptr<World> world, std::string name_prefix,
    const DistributedOptimizerOptions& options,
    const NamedParameters& parameters) {
  if (options.backward_passes_per_step() < 1) {
    ThrowError(absl::StrCat(kWhat, ": backward_passes_per_step is ",
                            options.backward_passes_per_step(),
                            ", but must be at least 1"));
  }
  GradientReducerOptions result;
  result.allreduce = AllreduceOptionsOf(options);
  result.request = RequestOf(result.allreduce, kWhat);
  result.request.process_set =
      MembersOf(*world, options.process_set(), kWhat).id;
  for (const auto& [name, tensor] : parameters) {
    const std::string refusal =
        ReductionRefusal(result.request, DataTypeOf(tensor));
    if (!refusal.empty()) {
      ThrowError(absl::StrCat(kWhat, ": parameter '", name, "': ", refusal));
    }
  }
  result.passes_per_step = options.backward_passes_per_step();
  result.groups = GroupParameters(options.groups(), parameters);
  result.sparse_as_dense = options.sparse_as_dense();
  result.gradient_as_fusion_view = options.gradient_as_fusion_view();
  result.name_prefix = std::move(name_prefix);
  result.world = std::move(world);
  return result;
}

}  // namespace hvdlite::internal
