#include "torch_plugin/state/batch_statistics.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "torch_plugin/ops/operation_call.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {

at::ScalarType StatisticsType(at::ScalarType input) {
  return input == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor PerChannel(const at::Tensor& values, const at::Tensor& input) {
  std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = values.numel();
  return values.view(shape);
}

at::Tensor BatchStatistics::Variance() const {
  return squares / static_cast<double>(std::max<int64_t>(count, 1));
}

at::Tensor BatchStatistics::UnbiasedVariance() const {
  return squares / static_cast<double>(count - 1);
}

BatchStatistics LocalStatistics(const at::Tensor& input) {
  const at::NoGradGuard no_grad;
  const int64_t channels = input.size(1);
  BatchStatistics result;
  result.count = channels == 0 ? 0 : input.numel() / channels;
  if (result.count == 0) {
    result.mean = at::zeros({channels}, at::kDouble);
    result.squares = at::zeros({channels}, at::kDouble);
    return result;
  }
  const auto [mean, variance] = at::batch_norm_update_stats(
      input.detach().to(StatisticsType(input.scalar_type())), {}, {},
      /*momentum=*/0.0);
  result.mean = mean.to(at::kDouble);
  result.squares = variance.to(at::kDouble) * result.count;
  return result;
}

// The variances of parts are combined as in Chan, Golub and LeVeque, "Updating
// formulae and a pairwise algorithm for computing sample variances", 1979.
BatchStatistics GatherStatistics(const at::Tensor& input,
                                 const std::string& refusal,
                                 const std::string& name,
                                 const ProcessSet& process_set) {
  OperationCall call("SyncBatchNorm", name, process_set);
  call.request().collective = negotiation::Collective::kAllgather;
  call.Refuse(refusal);
  call.Prepare([&] {
    const BatchStatistics local = LocalStatistics(input);
    const at::Tensor header = at::zeros({2}, at::kDouble);
    header[0] = local.count;
    header[1] = RecordsGradients(input) ? 1 : 0;
    call.AddRows(at::cat({header, local.mean, local.squares}).unsqueeze(0));
  });
  const at::Tensor rows = call.Run()->result();
  const at::NoGradGuard no_grad;

  const auto with_gradient = rows.select(1, 1).sum().item<int64_t>();
  if (with_gradient != 0 && with_gradient != rows.size(0)) {
    ThrowError(absl::StrCat(
        "SyncBatchNorm '", name, "': the inputs of ", with_gradient, " of ",
        rows.size(0),
        " ranks require a gradient. Backward is a collective operation: pass "
        "inputs that require one on every rank or on none, and use the same "
        "GradMode"));
  }
  const int64_t channels = input.size(1);
  const at::Tensor counts = rows.slice(1, 0, 1);
  const at::Tensor means = rows.slice(1, 2, 2 + channels);
  const at::Tensor squares = rows.slice(1, 2 + channels);
  BatchStatistics result;
  result.count = counts.sum().item<int64_t>();
  if (result.count == 1) {
    ThrowError(absl::StrCat(
        "SyncBatchNorm '", name,
        "': there is a single value per channel over all ranks, which has no "
        "variance; use a larger batch"));
  }
  const at::Tensor shares =
      counts / static_cast<double>(std::max<int64_t>(result.count, 1));
  result.mean = (means * shares).sum(0);
  result.squares = (squares + counts * (means - result.mean).square()).sum(0);
  return result;
}

}  // namespace hvdlite::internal
