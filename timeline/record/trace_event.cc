#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {

TraceEvent StepEvent(int64_t number, int64_t start_ns, int64_t end_ns,
                     const StepCost& cost) {
  TraceEvent event = {.name = "TRAINING_STEP",
                      .track = kStepTrack,
                      .start_ns = start_ns,
                      .duration_ns = end_ns - start_ns,
                      .args = {{"step", number}}};
  if (cost.work >= 0) event.args.emplace_back("work", cost.work);
  if (cost.cpu_us >= 0) event.args.emplace_back("cpu_us", cost.cpu_us);
  return event;
}

int64_t NumberOf(const std::vector<TraceArg>& args, absl::string_view name,
                 int64_t fallback) {
  for (const auto& [key, value] : args) {
    const auto* number = std::get_if<int64_t>(&value);
    if (key == name && number != nullptr) return *number;
  }
  return fallback;
}

std::string TextOf(const std::vector<TraceArg>& args, absl::string_view name) {
  for (const auto& [key, value] : args) {
    const auto* text = std::get_if<std::string>(&value);
    if (key == name && text != nullptr) return *text;
  }
  return "";
}

}  // namespace hvdlite::timeline
