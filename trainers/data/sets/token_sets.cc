#include "trainers/data/sets/token_sets.h"

#include <algorithm>
#include <string>
#include <utility>

#include "support/input_error.h"
#include "trainers/data/formats/data_file.h"

namespace hvdlite::trainers {
namespace {

torch::Tensor Padding(int64_t rows, int64_t columns) {
  return torch::zeros({rows, columns}, torch::kInt64);
}

int64_t* Row(torch::Tensor& tensor, int64_t row) {
  return tensor.data_ptr<int64_t>() + row * tensor.size(1);
}

// Returns the position after the last token.
int64_t* PutTokens(const std::vector<uint8_t>& kinds, int64_t* place) {
  return std::transform(kinds.begin(), kinds.end(), place, [](uint8_t kind) {
    return int64_t{kind} + kSpecialTokens;
  });
}

void PutPositions(int64_t count, int64_t* place) {
  for (int64_t position = 1; position <= count; ++position) *place++ = position;
}

}  // namespace

ProteinTokens MakeProteinTokens(const ProteinSet& proteins,
                                const std::vector<int64_t>& indices) {
  const auto protein = [&](int64_t row) -> const Protein& {
    return proteins[static_cast<size_t>(indices[static_cast<size_t>(row)])];
  };
  const auto count = static_cast<int64_t>(indices.size());
  int64_t longest = 0;
  for (int64_t row = 0; row < count; ++row) {
    longest =
        std::max(longest, static_cast<int64_t>(protein(row).residues.size()));
  }
  ProteinTokens tokens = {.source = Padding(count, longest + 2),
                          .source_positions = Padding(count, longest + 2),
                          .target = Padding(count, longest + 1),
                          .target_positions = Padding(count, longest + 1),
                          .expected = Padding(count, longest + 1)};
  for (int64_t row = 0; row < count; ++row) {
    const auto length = static_cast<int64_t>(protein(row).residues.size());
    int64_t* source = Row(tokens.source, row);
    *source++ = kBeginToken;
    *PutTokens(protein(row).residues, source) = kEndToken;
    PutPositions(length + 2, Row(tokens.source_positions, row));

    int64_t* target = Row(tokens.target, row);
    *target++ = kBeginToken;
    PutTokens(protein(row).structures, target);
    PutPositions(length + 1, Row(tokens.target_positions, row));

    *PutTokens(protein(row).structures, Row(tokens.expected, row)) = kEndToken;
  }
  return tokens;
}

TextWindows::TextWindows(std::vector<uint8_t> text, int64_t context)
    : text_(std::move(text)),
      context_(context),
      windows_(std::max<int64_t>(
          (static_cast<int64_t>(text_.size()) - 1) / context, 0)),
      train_windows_(windows_ * 9 / 10) {}

torch::Tensor TextWindows::Train(const std::vector<int64_t>& indices) const {
  return Load(indices, 0);
}

torch::Tensor TextWindows::Test(const std::vector<int64_t>& indices) const {
  return Load(indices, train_windows_);
}

torch::Tensor TextWindows::Load(const std::vector<int64_t>& indices,
                                int64_t first) const {
  torch::Tensor windows = torch::empty(
      {static_cast<int64_t>(indices.size()), context_ + 1}, torch::kInt64);
  int64_t* place = windows.data_ptr<int64_t>();
  for (const int64_t index : indices) {
    place = std::copy_n(text_.begin() + (first + index) * context_,
                        context_ + 1, place);
  }
  return windows;
}

TextWindows ReadTextWindows(const std::filesystem::path& file,
                            int64_t context) {
  std::vector<uint8_t> text = ReadWholeFile(file);
  const size_t bytes = text.size();
  TextWindows windows(std::move(text), context);
  if (windows.train_windows() == 0 || windows.test_windows() == 0) {
    throw support::InputError(
        "the text '" + file.string() + "' has " + std::to_string(bytes) +
        " bytes; a training and a test window of --context " +
        std::to_string(context) + " need " + std::to_string(2 * context + 1));
  }
  return windows;
}

}  // namespace hvdlite::trainers
