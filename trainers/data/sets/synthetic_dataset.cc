#include "trainers/data/sets/synthetic_dataset.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

namespace hvdlite::trainers {

SyntheticDataset::SyntheticDataset(const SyntheticOptions& options)
    : size_(options.size) {
  const at::Generator generator = at::detail::createCPUGenerator(options.seed);
  batch_.images = torch::randn(
      {options.batch_size, 3, options.image_side, options.image_side},
      generator);
  batch_.labels = torch::randint(options.classes, {options.batch_size},
                                 generator, torch::kInt64);
}

Batch SyntheticDataset::Load(const std::vector<int64_t>& indices,
                             int64_t /*epoch*/) {
  const auto count = static_cast<int64_t>(indices.size());
  return {batch_.images.narrow(0, 0, count), batch_.labels.narrow(0, 0, count)};
}

}  // namespace hvdlite::trainers
