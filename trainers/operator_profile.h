// Measures the time of LibTorch's operators.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hvdlite::trainers {

struct OperatorTime {
  std::string name;  // "aten::addmm"
  int64_t calls = 0;
  double seconds = 0;       // including the operators that it calls
  double self_seconds = 0;  // excluding them
};

// Counts the operators that any thread of this process runs during its
// lifetime, forward and backward, with LibTorch's own profiler hooks. Only one
// may exist at a time.
class OperatorProfile {
 public:
  OperatorProfile();
  ~OperatorProfile();
  OperatorProfile(const OperatorProfile&) = delete;
  OperatorProfile& operator=(const OperatorProfile&) = delete;

  // The operators so far, by self time in descending order.
  std::vector<OperatorTime> Hottest(size_t count) const;

 private:
  const at::CallbackHandle callback_;
};

// Formats them as a table, one line each.
std::string FormatOperators(const std::vector<OperatorTime>& operators);

}  // namespace hvdlite::trainers
