// Which of LibTorch's operators take the time.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hvdlite::trainers {

struct OperatorTime {
  std::string name;  // "aten::addmm"
  int64_t calls = 0;
  double seconds = 0;       // with the operators that it calls
  double self_seconds = 0;  // without
};

// Counts the operators that any thread of this process runs while it lives,
// forward and backward, by LibTorch's own hooks for profilers. One at a time.
class OperatorProfile {
 public:
  OperatorProfile();
  ~OperatorProfile();
  OperatorProfile(const OperatorProfile&) = delete;
  OperatorProfile& operator=(const OperatorProfile&) = delete;

  // So far, those that took most by themselves first.
  std::vector<OperatorTime> Hottest(size_t count) const;

 private:
  const at::CallbackHandle callback_;
};

// A table of them, as text with a line each.
std::string FormatOperators(const std::vector<OperatorTime>& operators);

}  // namespace hvdlite::trainers
