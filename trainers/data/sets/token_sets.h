// Proteins and text as tensors of tokens for transformers.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "trainers/data/sets/protein_set.h"

namespace hvdlite::trainers {

// Tokens of both vocabularies, before residues and structures.
inline constexpr int64_t kUnknownToken = 1;
inline constexpr int64_t kBeginToken = 2;
inline constexpr int64_t kEndToken = 3;
inline constexpr int64_t kSpecialTokens = 4;  // 0 is padding

// int64 tensors [N, T], as long as the longest protein needs, with padding.
struct ProteinTokens {
  torch::Tensor source;            // begin, residues, end
  torch::Tensor source_positions;  // from 1; 0 at padding
  torch::Tensor target;            // begin, structures: input of the decoder
  torch::Tensor target_positions;
  torch::Tensor expected;  // structures, end: output of the decoder
};

// Returns the proteins with these indices.
ProteinTokens MakeProteinTokens(const ProteinSet& proteins,
                                const std::vector<int64_t>& indices);

// A text as bytes, in windows of context + 1 bytes. In each window the first
// `context` bytes predict the last `context`. A window begins with the last
// byte of the previous one. The first nine tenths of the windows are for
// training, the rest for testing.
class TextWindows {
 public:
  TextWindows(std::vector<uint8_t> text, int64_t context);

  int64_t train_windows() const { return train_windows_; }
  int64_t test_windows() const { return windows_ - train_windows_; }

  // Returns the windows with these indices: int64 [N, context + 1].
  torch::Tensor Train(const std::vector<int64_t>& indices) const;
  torch::Tensor Test(const std::vector<int64_t>& indices) const;

 private:
  torch::Tensor Load(const std::vector<int64_t>& indices, int64_t first) const;

  std::vector<uint8_t> text_;
  int64_t context_;
  int64_t windows_;
  int64_t train_windows_;
};

// Reads a file of any bytes. Throws InputError if it is too short for one
// training window and one test window. Throws as ThrowCannotRead does if it
// cannot be read.
TextWindows ReadTextWindows(const std::filesystem::path& file, int64_t context);

}  // namespace hvdlite::trainers
