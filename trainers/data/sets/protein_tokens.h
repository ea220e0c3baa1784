// Proteins as the transformer reads them.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "trainers/data/sets/protein_set.h"

namespace hvdlite::trainers {

// Tokens of both vocabularies; residues and structures follow them.
inline constexpr int64_t kUnknownToken = 1;
inline constexpr int64_t kBeginToken = 2;
inline constexpr int64_t kEndToken = 3;
inline constexpr int64_t kSpecialTokens = 4;  // 0 is padding

// int64 tensors [N, T], as long as the longest protein needs, with padding.
struct ProteinTokens {
  torch::Tensor source;            // begin, residues, end
  torch::Tensor source_positions;  // from 1; 0 at padding
  torch::Tensor target;            // begin, structures: what a decoder is fed
  torch::Tensor target_positions;
  torch::Tensor expected;  // structures, end: what it is to say
};

// The proteins with these indices.
ProteinTokens MakeProteinTokens(const ProteinSet& proteins,
                                const std::vector<int64_t>& indices);

}  // namespace hvdlite::trainers
