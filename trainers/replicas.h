// Keeping the ranks' models equal, and checking that they are.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// Replaces every floating-point buffer (batch normalisation's running mean and
// variance, which each rank gathers from its own images) by its mean over the
// ranks. Collective.
void AverageBuffers(torch::nn::Module& model);

// A number that depends on every bit of the model's parameters, and not on
// their memory format.
int64_t ParameterDigest(const torch::nn::Module& model);

// Every rank's ParameterDigest, by rank. Collective.
std::vector<int64_t> GatherParameterDigests(const torch::nn::Module& model);

// Each value's sum over the ranks, which all have as many. Collective.
std::vector<double> SumOverRanks(const std::vector<double>& values);

}  // namespace hvdlite::trainers
