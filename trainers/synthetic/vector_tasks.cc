#include <torch/types.h>

#include "trainers/models/mlp.h"
#include "trainers/models/neural_collaborative_filtering.h"
#include "trainers/synthetic/classification.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {

SyntheticTask MakeMlpTask(const SyntheticTaskOptions& options) {
  MlpOptions sizes;
  for (size_t i = 1; i + 1 < sizes.widths.size(); ++i) {
    sizes.widths[i] = SizeOr(options.hidden, sizes.widths[i]);
  }
  sizes.widths.back() = SizeOr(options.classes, sizes.widths.back());
  const at::Generator random = GeneratorOf(options);
  return Classification(
      Mlp(sizes),
      torch::randn({options.batch_size, sizes.widths.front()}, random),
      torch::randint(sizes.widths.back(), {options.batch_size}, random,
                     torch::kInt64));
}

// Whether a user interacts with an item.
SyntheticTask MakeFilteringTask(const SyntheticTaskOptions& options) {
  const NeuralCollaborativeFilteringOptions sizes;
  const at::Generator random = GeneratorOf(options);
  const auto draw = [&](int64_t limit) {
    return torch::randint(limit, {options.batch_size}, random, torch::kInt64);
  };
  const torch::Tensor users = draw(sizes.users);
  const torch::Tensor items = draw(sizes.items);
  const torch::Tensor labels = draw(2).to(torch::kFloat32);
  NeuralCollaborativeFiltering model(sizes);
  return {.model = model.ptr(), .loss = [=]() mutable {
            return torch::nn::functional::binary_cross_entropy_with_logits(
                model(users, items), labels);
          }};
}

}  // namespace hvdlite::trainers
