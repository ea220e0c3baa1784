// Forward passes in bfloat16.
#pragma once

#include <c10/core/ScalarType.h>

namespace hvdlite::trainers {

// While it lives, the operators of this thread that profit, such as
// convolutions and matrix products, compute in bfloat16, from copies of
// float32 weights; other operators take the type of their inputs. Does nothing
// if `enabled` is false. The backward pass belongs outside: it uses the types
// of the forward pass by itself, and gradients are float32 as the weights are.
class Bfloat16Autocast {
 public:
  explicit Bfloat16Autocast(bool enabled);
  ~Bfloat16Autocast();  // restores what was; the outermost drops the copies

  Bfloat16Autocast(const Bfloat16Autocast&) = delete;
  Bfloat16Autocast& operator=(const Bfloat16Autocast&) = delete;

 private:
  const bool enabled_;
  bool was_enabled_ = false;
  at::ScalarType previous_type_ = at::kFloat;
};

}  // namespace hvdlite::trainers
