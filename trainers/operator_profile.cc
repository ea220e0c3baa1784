#include "trainers/operator_profile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>

namespace hvdlite::trainers {
namespace {

using Clock = std::chrono::steady_clock;

// LibTorch calls plain functions, which need global counters.
std::mutex counted_mutex;
std::map<std::string, OperatorTime> counted;  // under counted_mutex

// An operator that is running.
struct Running final : at::ObserverContext {
  Running* caller = nullptr;
  Clock::time_point start = Clock::now();
  double inside_seconds = 0;  // in operators that it called
};
thread_local Running* innermost = nullptr;

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction&) {
  auto running = std::make_unique<Running>();
  running->caller = innermost;
  innermost = running.get();
  return running;
}

void OnEnd(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto& running = *static_cast<Running*>(context);
  const double seconds =
      std::chrono::duration<double>(Clock::now() - running.start).count();
  innermost = running.caller;
  if (innermost != nullptr) innermost->inside_seconds += seconds;
  const std::lock_guard lock(counted_mutex);
  OperatorTime& total = counted[function.name()];
  ++total.calls;
  total.seconds += seconds;
  total.self_seconds += seconds - running.inside_seconds;
}

}  // namespace

OperatorProfile::OperatorProfile()
    : callback_(at::addGlobalCallback(
          at::RecordFunctionCallback(&OnStart, &OnEnd)
              .scopes({at::RecordScope::FUNCTION,
                       at::RecordScope::BACKWARD_FUNCTION}))) {
  const std::lock_guard lock(counted_mutex);
  counted.clear();
}

OperatorProfile::~OperatorProfile() { at::removeCallback(callback_); }

std::vector<OperatorTime> OperatorProfile::Hottest(size_t count) const {
  std::vector<OperatorTime> operators;
  {
    const std::lock_guard lock(counted_mutex);
    for (const auto& [name, time] : counted) {
      operators.push_back(time);
      operators.back().name = name;
    }
  }
  std::sort(operators.begin(), operators.end(),
            [](const OperatorTime& a, const OperatorTime& b) {
              return a.self_seconds > b.self_seconds;
            });
  if (operators.size() > count) operators.resize(count);
  return operators;
}

std::string FormatOperators(const std::vector<OperatorTime>& operators) {
  char line[160];
  std::snprintf(line, sizeof line, "%-48s %10s %12s %12s\n", "operator",
                "calls", "self s", "total s");
  std::string table = line;
  for (const OperatorTime& one : operators) {
    std::snprintf(line, sizeof line, "%-48.48s %10lld %12.3f %12.3f\n",
                  one.name.c_str(), static_cast<long long>(one.calls),
                  one.self_seconds, one.seconds);
    table += line;
  }
  return table;
}

}  // namespace hvdlite::trainers
