#include "trainers/replicas.h"

#include <hvdlite/hvdlite.h>
#include <torch/types.h>

namespace hvdlite::trainers {

void AverageBuffers(torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> buffers;
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& buffer : model.buffers()) {
    if (!buffer.is_floating_point()) continue;
    buffers.push_back(buffer);
    flat.push_back(buffer.flatten());
  }
  if (buffers.empty()) return;
  // One operation for all of them.
  const torch::Tensor mean =
      allreduce(torch::cat(flat), AllreduceOptions().name("buffers"));
  int64_t offset = 0;
  for (torch::Tensor& buffer : buffers) {
    buffer.copy_(mean.narrow(0, offset, buffer.numel()).view_as(buffer));
    offset += buffer.numel();
  }
}

// FNV-1a (Fowler, Noll, Vo), 64 bits, over bytes.
int64_t ParameterDigest(const torch::nn::Module& model) {
  uint64_t digest = 0xcbf29ce484222325;
  for (const torch::Tensor& parameter : model.parameters()) {
    const torch::Tensor values = parameter.detach().contiguous();
    const auto* bytes = static_cast<const uint8_t*>(values.data_ptr());
    for (size_t i = 0; i < values.nbytes(); ++i) {
      digest = (digest ^ bytes[i]) * 0x100000001b3;
    }
  }
  return static_cast<int64_t>(digest);
}

std::vector<int64_t> GatherParameterDigests(const torch::nn::Module& model) {
  torch::Tensor digests = torch::zeros({size()}, torch::kInt64);
  digests[rank()] = ParameterDigest(model);
  digests = allreduce(
      digests, AllreduceOptions().op(ReduceOp::Sum).name("parameter_digests"));
  const int64_t* data = digests.data_ptr<int64_t>();
  return {data, data + digests.numel()};
}

std::vector<double> SumOverRanks(const std::vector<double>& values) {
  if (values.empty()) return {};
  const torch::Tensor sums =
      allreduce(torch::tensor(values, torch::kFloat64),
                AllreduceOptions().op(ReduceOp::Sum).name("sums"));
  const double* data = sums.data_ptr<double>();
  return {data, data + sums.numel()};
}

}  // namespace hvdlite::trainers
