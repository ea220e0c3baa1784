#include "trainers/models/memory_format.h"

namespace hvdlite::trainers {

void SetMemoryFormat(torch::nn::Module& model, at::MemoryFormat format) {
  for (torch::Tensor& parameter : model.parameters()) {
    if (parameter.dim() == 4) {
      parameter.set_data(parameter.detach().contiguous(format));
    }
  }
}

}  // namespace hvdlite::trainers
