// A fixture for tests of the Tuner, on a FakeMachine.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "tests/tools/scaling_sweep/tune/fake_machine.h"
#include "tests/tools/scaling_sweep/tune/tune_spec.h"
#include "tools/scaling_sweep/tune/tuner.h"

namespace hvdlite::scaling_sweep {

inline bool Has(const std::string& setting, const std::string& option) {
  return absl::StrContains(setting, option);
}

inline double FastBlas(const std::string& setting) {
  return Has(setting, "blas=fast") ? 200 : 100;
}

class TunerTest : public ::testing::Test {
 protected:
  // Runs a search of 15 minutes, unless `options_` has another time.
  absl::Status Search() {
    tuner_.emplace(spec_, dimensions_, machine_, options_, out_);
    const absl::Status status = tuner_->Search();
    result_ = tuner_->Result();
    return status;
  }
  std::string Text() { return TuningText(result_, spec_, "hvdliterun"); }
  std::string Recommended() { return NameOf(dimensions_, result_.recommended); }
  // The repeats from here on belong to the last comparison.
  void SlowFrom(const std::string& option, double factor) {
    machine_.speed = [=, this,
                      before = machine_.speed](const std::string& setting) {
      const bool last = absl::StrContains(out_.str(), "last comparison: ");
      return before(setting) * (last && Has(setting, option) ? factor : 1);
    };
  }

  Spec spec_ = TuneSpec();
  Dimensions dimensions_ = DimensionsFrom(spec_);
  FakeMachine machine_;
  TuneOptions options_;
  std::ostringstream out_;
  std::optional<Tuner> tuner_;
  TuningResult result_;
};

}  // namespace hvdlite::scaling_sweep
