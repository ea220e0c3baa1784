#include "tools/scaling_sweep/run/thread_count.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr char kThreads[] = "OMP_NUM_THREADS";

// Of a list for nested regions the first; 0 if it is no number.
int FirstNumber(const std::string& text) {
  int number = 0;
  return absl::SimpleAtoi(text.substr(0, text.find(',')), &number)
             ? std::max(0, number)
             : 0;
}

}  // namespace

int ThreadsBySettings(const Configuration& configuration,
                      const base::Environment& environment) {
  if (configuration.threads > 0) return configuration.threads;
  std::optional<std::string> text = environment.get(kThreads);
  for (const auto& [name, value] : configuration.environment) {
    if (name == kThreads) text = value;
  }
  return FirstNumber(text.value_or(""));
}

bool IsOversubscribed(int ranks_per_node, int threads, int asked,
                      const std::optional<LaunchPlan>& plan,
                      const Processors& node) {
  if (plan && plan->oversubscribed) return true;
  if (plan && plan->threads == threads && threads != asked) return false;
  const bool has_cores = threads <= 1 || threads == asked;
  return ranks_per_node * std::max(1, threads) >
         (has_cores ? node.cores : node.cpus);
}

}  // namespace hvdlite::scaling_sweep
