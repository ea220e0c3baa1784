// Training by cross entropy.
#pragma once

#include <torch/nn/functional/loss.h>

#include "trainers/synthetic/synthetic_task.h"

namespace hvdlite::trainers {

// `model` makes logits [..., classes] of `inputs`; `labels` [...] are int64.
template <typename Model>
SyntheticTask Classification(Model model, torch::Tensor inputs,
                             torch::Tensor labels) {
  return {.model = model.ptr(), .loss = [model, inputs, labels]() mutable {
            return torch::nn::functional::cross_entropy(
                model(inputs).flatten(0, -2), labels.flatten());
          }};
}

}  // namespace hvdlite::trainers
