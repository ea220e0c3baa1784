#include "trainers/data/sets/protein_tokens.h"

#include <algorithm>

namespace hvdlite::trainers {
namespace {

torch::Tensor Padding(int64_t rows, int64_t columns) {
  return torch::zeros({rows, columns}, torch::kInt64);
}

int64_t* Row(torch::Tensor& tensor, int64_t row) {
  return tensor.data_ptr<int64_t>() + row * tensor.size(1);
}

// Returns what follows the last of them.
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

}  // namespace hvdlite::trainers
