// FakeMachine: a TrialRunner whose runs take time only on a fake clock.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "support/machine.h"
#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/tune/trials.h"

namespace hvdlite::scaling_sweep {

struct FakeRun {
  std::string setting;
  int repeat = 0;
  double start = 0;
};

class FakeMachine : public TrialRunner {
 public:
  // Of a setting, by its name; 0: the run fails.
  std::function<double(const std::string& setting)> speed =
      [](const std::string&) { return 100.0; };
  // The duration of a run; `runs` already contains it, and the number counts
  // from 0. A run that takes longer than its limit is ended.
  std::function<double(int run)> seconds = [](int) { return 5.0; };
  std::function<bool(int run)> busy = [](int) { return false; };
  double scatter = 0;  // standard deviation of the logarithm of the speed
  int stop_at = -1;    // the run that a signal ends
  std::map<std::string, std::string> refusals = {};  // by setting
  std::optional<LaunchPlan> plan = {};
  std::mt19937_64 random{1};

  double now = 0;
  std::vector<FakeRun> runs = {};

  bool Has(const Configuration& configuration, int repeat) const override {
    return samples_.contains({Key(configuration), repeat});
  }

  absl::StatusOr<LaunchAnswer> Ask(
      const Configuration& configuration) override {
    const auto refusal = refusals.find(configuration.setting);
    if (refusal != refusals.end()) {
      return LaunchAnswer{.plan = {}, .refusal = refusal->second};
    }
    return LaunchAnswer{.plan = plan, .refusal = ""};
  }

  double Seconds() const override { return now; }

  absl::StatusOr<FinishedRun> Run(const Configuration& configuration,
                                  int repeat, const RunLimit& limit) override {
    const std::pair<std::string, int> key = {Key(configuration), repeat};
    const auto there = samples_.find(key);
    if (there != samples_.end()) return FinishedRun{there->second, false};
    const int number = static_cast<int>(runs.size());
    if (number == stop_at) return absl::CancelledError("interrupted");
    runs.push_back({configuration.setting, repeat, now});
    Sample sample;
    sample.configuration = key.first;
    sample.repeat = repeat;
    const double wanted = seconds(number);
    const bool too_long = wanted > limit.seconds;
    sample.seconds = too_long ? limit.seconds : wanted;
    now += sample.seconds + 0.1;
    if (too_long && limit.is_all_there_is) {
      return absl::DeadlineExceededError("took too long");
    }
    const double mean = speed(configuration.setting);
    if (too_long) {
      sample.failure = "took too long";
    } else if (mean > 0) {
      std::normal_distribution<double> noise(0, scatter);
      sample.items_per_second =
          mean * (scatter > 0 ? std::exp(noise(random)) : 1);
    } else {
      sample.failure = "it fails";
    }
    sample.machine["other programs"] =
        support::DescribeOtherPrograms(busy(number) ? 0.4 : 0.01, /*cpus=*/2);
    return FinishedRun{samples_[key] = sample, true};
  }

 private:
  std::map<std::pair<std::string, int>, Sample> samples_;
};

}  // namespace hvdlite::scaling_sweep
