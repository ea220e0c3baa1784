#include "trainers/models/dropout.h"

#include <torch/nn/modules/dropout.h>

namespace hvdlite::trainers {

void SetDropout(torch::nn::Module& model, double share) {
  for (const auto& module : model.modules()) {
    if (auto* dropout = module->as<torch::nn::DropoutImpl>()) {
      dropout->options.p(share);
    } else if (auto* dropout2d = module->as<torch::nn::Dropout2dImpl>()) {
      dropout2d->options.p(share);
    }
  }
}

}  // namespace hvdlite::trainers
