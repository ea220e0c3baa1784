#include "trainers/benchmark/observation_plan.h"

#include <string>

#include "tools/support/input_error.h"

namespace hvdlite::trainers {
namespace {

void RequirePositive(const std::string& flag, int64_t value) {
  if (value > 0) return;
  throw InputError(flag + " is " + std::to_string(value) +
                   "; expected at least 1");
}

}  // namespace

void RequireValid(const ObservationPlan& plan) {
  RequirePositive("--repeat", plan.repeat);
  RequirePositive("--number", plan.number);
  RequirePositive("--batch-size", plan.batch_size);
  if (plan.skip < 0) {
    throw InputError(std::to_string(plan.skip) +
                     " observations to leave out; expected at least 0");
  }
  if (plan.repeat <= plan.skip) {
    throw InputError("--repeat is " + std::to_string(plan.repeat) +
                     "; expected more than " + std::to_string(plan.skip) +
                     ", the number of first observations that are left out");
  }
}

}  // namespace hvdlite::trainers
