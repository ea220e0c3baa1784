#include "timeline/diagnose/resource_use.h"

#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace hvdlite::timeline {
namespace {

// Sums of the counters of one rank. Each sample covers the time since the
// previous one; counting starts at the first.
class ResourceSums {
 public:
  // Whether `counter` belongs to the samples.
  static bool Knows(absl::string_view counter) {
    return counter == "PROGRESS_THREAD" || counter == "MAIN_THREAD" ||
           counter == "COMPUTE_THREADS" || counter == "MEMORY";
  }

  void Add(const Trace& trace, const TraceCounter& counter) {
    if (counter.time_ns != now_ns_) {
      last_ns_ = std::exchange(now_ns_, counter.time_ns);
      if (last_ns_ != 0) sums_.seconds += SinceLast();
    }
    if (last_ns_ == 0) return;
    const std::string& name = trace.names[counter.name];
    const auto value = [&](absl::string_view key) {
      for (const auto& [index, number] : counter.values) {
        if (trace.names[index] == key) return number;
      }
      return 0.0;
    };
    if (name == "PROGRESS_THREAD") {
      sums_.progress_cpu += value("cpu_us") / 1e6;
      sums_.progress_delay += value("delay_us") / 1e6;
      sums_.progress_switches += value("involuntary");
    } else if (name == "MAIN_THREAD") {
      sums_.main_cpu += value("cpu_us") / 1e6;
      sums_.main_delay += value("delay_us") / 1e6;
    } else if (name == "COMPUTE_THREADS") {
      sums_.compute_cpu += value("cpu_us") / 1e6;
      sums_.compute_delay += value("delay_us") / 1e6;
      sums_.threads += value("threads") * SinceLast();
    } else if (name == "MEMORY") {
      sums_.major_faults += value("major_faults");
      sums_.minor_faults += value("minor_faults");
      sums_.system_cpu += value("system_cpu_us") / 1e6;
    }
  }

  // Drops the samples up to `time_ns`: they cover the time before the steps.
  void Forget(int64_t time_ns) {
    sums_ = {};
    now_ns_ = time_ns;
  }

  ResourceUse PerSecond() const {
    ResourceUse use = sums_;
    if (use.seconds <= 0) return {};
    for (double* const sum :
         {&use.progress_cpu, &use.progress_delay, &use.main_cpu,
          &use.main_delay, &use.compute_cpu, &use.compute_delay, &use.threads,
          &use.system_cpu, &use.major_faults, &use.minor_faults,
          &use.progress_switches}) {
      *sum /= use.seconds;
    }
    return use;
  }

 private:
  double SinceLast() const {
    return static_cast<double>(now_ns_ - last_ns_) / 1e9;
  }

  ResourceUse sums_;
  int64_t now_ns_ = 0;   // time of the latest sample
  int64_t last_ns_ = 0;  // time of the sample before it; 0: none
};

}  // namespace

std::map<int64_t, ResourceUse> FindResourceUse(
    const Trace& trace,
    const std::map<int64_t, std::pair<int64_t, int64_t>>& windows) {
  std::map<int64_t, ResourceSums> sums;
  for (const TraceCounter& counter : trace.counters) {
    const auto window = windows.find(counter.pid);
    const std::string& name = trace.names[counter.name];
    if (window == windows.end() || !ResourceSums::Knows(name)) continue;
    // The last sample is taken a little after the last step.
    constexpr int64_t kSampleNs = 120'000'000;
    ResourceSums& rank = sums[counter.pid];
    if (counter.time_ns <= window->second.first) {
      rank.Forget(counter.time_ns);
    } else if (counter.time_ns <= window->second.second + kSampleNs) {
      rank.Add(trace, counter);
    }
  }
  std::map<int64_t, ResourceUse> resources;
  for (const auto& [rank, sum] : sums) {
    const ResourceUse use = sum.PerSecond();
    if (use.seconds > 0) resources.emplace(rank, use);
  }
  return resources;
}

}  // namespace hvdlite::timeline
