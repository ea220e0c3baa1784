// What tests ask of every model.
#pragma once

#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cstdint>

namespace hvdlite::trainers {

inline int64_t CountParameters(const torch::nn::Module& model) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : model.parameters()) {
    count += parameter.numel();
  }
  return count;
}

// Expects that a backward pass has given every parameter a finite gradient.
inline void ExpectFiniteGradients(const torch::nn::Module& model) {
  for (const auto& parameter : model.named_parameters()) {
    const torch::Tensor& gradient = parameter.value().grad();
    ASSERT_TRUE(gradient.defined()) << parameter.key();
    EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << parameter.key();
  }
}

}  // namespace hvdlite::trainers
