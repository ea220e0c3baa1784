#include "tools/scale_sim/fit_parameters.h"

namespace hvdlite::scale_sim {

const std::vector<FitParameter>& FitParameters() {
  static const auto* const parameters = new std::vector<FitParameter>{
      {.name = "image-ms",
       .start = 10,
       .lower = 1e-6,
       .upper = 1e6,
       .of = [](HorovodModel& model) -> double& {
         return model.training.compute.image_ms;
       }},
      {.name = "starved-share",
       .start = 0.1,
       .lower = 1e-4,
       .upper = 0.95,
       .of = [](HorovodModel& model) -> double& {
         return model.training.compute.starved_share;
       }},
      {.name = "software-ns-per-byte",
       .start = 1,
       .lower = 1e-4,
       .upper = 1e4,
       .of = [](HorovodModel& model) -> double& {
         return model.training.allreduce.software_ns_per_byte;
       }},
      {.name = "first-batch-image-ms",
       .start = 1,
       .lower = 1e-4,
       .upper = 1e6,
       .of = [](HorovodModel& model) -> double& {
         return model.training.compute.first_batch_image_ms;
       }},
      {.name = "jitter",
       .start = 0.01,
       .lower = 1e-6,
       .upper = 10,
       .of = [](HorovodModel& model) -> double& {
         return model.training.compute.jitter;
       }},
  };
  return *parameters;
}

const FitParameter* FindFitParameter(absl::string_view name) {
  for (const FitParameter& parameter : FitParameters()) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

}  // namespace hvdlite::scale_sim
