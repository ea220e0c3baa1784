#include "torch_plugin/ops/saved_value.h"

namespace hvdlite::internal {

void SaveHolder(torch::autograd::AutogradContext* context,
                c10::intrusive_ptr<torch::CustomClassHolder> holder) {
  context->saved_data["value"] = c10::IValue::make_capsule(std::move(holder));
}

}  // namespace hvdlite::internal
