// A text as bytes, in pieces of equal length.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace hvdlite::trainers {

// Windows of context + 1 bytes, each beginning with the last byte of the one
// before: in each the first `context` bytes predict the last `context`. The
// first nine tenths of the windows are for training, the rest for testing.
class TextWindows {
 public:
  TextWindows(std::vector<uint8_t> text, int64_t context);

  int64_t train_windows() const { return train_windows_; }
  int64_t test_windows() const { return windows_ - train_windows_; }

  // The windows with these indices: int64 [N, context + 1].
  torch::Tensor Train(const std::vector<int64_t>& indices) const;
  torch::Tensor Test(const std::vector<int64_t>& indices) const;

 private:
  torch::Tensor Load(const std::vector<int64_t>& indices, int64_t first) const;

  std::vector<uint8_t> text_;
  int64_t context_;
  int64_t windows_;
  int64_t train_windows_;
};

// Of a file of any bytes. Throws InputError if it cannot be read or is too
// short for one window of either kind.
TextWindows ReadTextWindows(const std::filesystem::path& file, int64_t context);

}  // namespace hvdlite::trainers
