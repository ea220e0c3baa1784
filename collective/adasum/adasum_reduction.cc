#include "collective/adasum/adasum_reduction.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/status_macros.h"

namespace hvdlite::collective {

AdasumTree::AdasumTree(int size)
    : num_leaves_(
          static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))),
      extra_(size - num_leaves_) {}

AdasumReduction::AdasumReduction(Communicator& communicator, DataType dtype,
                                 absl::Span<std::byte> vector,
                                 absl::Span<const size_t> tensor_ends,
                                 size_t chunk_bytes,
                                 absl::FunctionRef<absl::Status()> next_chunk)
    : communicator_(communicator),
      tree_(communicator.size()),
      leaf_(tree_.LeafOf(communicator.rank())),
      dtype_(dtype),
      vector_(vector),
      tensor_ends_(tensor_ends),
      chunk_bytes_(chunk_bytes),
      next_chunk_(next_chunk),
      received_(tree_.LeafMate(communicator.rank()) >= 0
                    ? vector.size()
                    : vector.size() / 2 + SizeOf(dtype)) {}

absl::Status AdasumReduction::Run() {
  const int leaf_mate = tree_.LeafMate(communicator_.rank());
  if (leaf_mate >= 0 && leaf_mate < communicator_.rank()) {
    HVDLITE_RETURN_IF_ERROR(Swap(leaf_mate, vector_, {}));
    return Swap(leaf_mate, {}, vector_);
  }
  if (leaf_mate < 0) return CombineLeaves();
  HVDLITE_RETURN_IF_ERROR(CombineOnLeaf(leaf_mate));
  HVDLITE_RETURN_IF_ERROR(CombineLeaves());
  return Swap(leaf_mate, vector_, {});
}

absl::Status AdasumReduction::CombineOnLeaf(int leaf_mate) {
  const Range all = {0, vector_.size()};
  HVDLITE_RETURN_IF_ERROR(
      Swap(leaf_mate, {}, received_.bytes().first(all.size())));
  Combine(all, /*received_is_b=*/true, Multiply(all, /*received_is_b=*/true));
  return absl::OkStatus();
}

absl::Status AdasumReduction::CombineLeaves() {
  struct Level {
    int peer;
    Range given;
  };
  std::vector<Level> levels;
  Range mine = {0, vector_.size()};
  for (int distance = 1; distance < tree_.num_leaves(); distance *= 2) {
    const size_t element_bytes = SizeOf(dtype_);
    const size_t middle =
        mine.begin + mine.size() / element_bytes / 2 * element_bytes;
    Range kept = {mine.begin, middle};
    Range given = {middle, mine.end};
    if ((leaf_ & distance) != 0) std::swap(kept, given);
    HVDLITE_RETURN_IF_ERROR(CombineLevel(distance, kept, given));
    levels.push_back({tree_.RankOf(leaf_ ^ distance), given});
    mine = kept;
  }
  for (; !levels.empty(); levels.pop_back()) {
    const Level& level = levels.back();
    HVDLITE_RETURN_IF_ERROR(
        Swap(level.peer, BytesOf(mine), BytesOf(level.given)));
    mine = {std::min(mine.begin, level.given.begin),
            std::max(mine.end, level.given.end)};
  }
  return absl::OkStatus();
}

absl::Status AdasumReduction::CombineLevel(int distance, Range kept,
                                           Range given) {
  HVDLITE_RETURN_IF_ERROR(Swap(tree_.RankOf(leaf_ ^ distance), BytesOf(given),
                               received_.bytes().first(kept.size())));
  const bool received_is_b = (leaf_ & distance) == 0;
  std::vector<ScalarProducts> products = Multiply(kept, received_is_b);
  HVDLITE_RETURN_IF_ERROR(SumOverNodes(distance, products));
  Combine(kept, received_is_b, products);
  return absl::OkStatus();
}

std::vector<ScalarProducts> AdasumReduction::Multiply(
    Range range, bool received_is_b) const {
  std::vector<ScalarProducts> products(tensor_ends_.size());
  VisitTensors(range, [&](size_t tensor, Range part) {
    const absl::Span<const std::byte> own = BytesOf(part);
    const absl::Span<const std::byte> received =
        received_.bytes().subspan(part.begin - range.begin, part.size());
    products[tensor] = received_is_b ? MultiplyVectors(dtype_, own, received)
                                     : MultiplyVectors(dtype_, received, own);
  });
  return products;
}

// By recursive doubling among the 2 * distance leaves of both nodes. Two ranks
// that add the same two numbers add them in the same order.
absl::Status AdasumReduction::SumOverNodes(
    int distance, std::vector<ScalarProducts>& products) {
  std::vector<ScalarProducts> theirs(products.size());
  const size_t bytes = products.size() * sizeof(ScalarProducts);
  for (int step = 1; step <= distance; step *= 2) {
    HVDLITE_RETURN_IF_ERROR(communicator_.Exchange(
        tree_.RankOf(leaf_ ^ step),
        {reinterpret_cast<const std::byte*>(products.data()), bytes},
        {reinterpret_cast<std::byte*>(theirs.data()), bytes}));
    const bool mine_first = (leaf_ & step) == 0;
    for (size_t i = 0; i < products.size(); ++i) {
      products[i] =
          mine_first ? products[i] + theirs[i] : theirs[i] + products[i];
    }
  }
  return absl::OkStatus();
}

void AdasumReduction::Combine(Range range, bool received_is_b,
                              absl::Span<const ScalarProducts> products) {
  VisitTensors(range, [&](size_t tensor, Range part) {
    AdasumFactors factors = FactorsFor(products[tensor]);
    if (received_is_b) std::swap(factors.a, factors.b);
    CombineVectors(
        dtype_, factors,
        received_.bytes().subspan(part.begin - range.begin, part.size()),
        BytesOf(part));
  });
}

absl::Status AdasumReduction::Swap(int peer, absl::Span<const std::byte> send,
                                   absl::Span<std::byte> receive) {
  while (!send.empty() || !receive.empty()) {
    if (any_chunk_) HVDLITE_RETURN_IF_ERROR(next_chunk_());
    any_chunk_ = true;
    const size_t send_bytes = std::min(send.size(), chunk_bytes_);
    const size_t receive_bytes = std::min(receive.size(), chunk_bytes_);
    HVDLITE_RETURN_IF_ERROR(communicator_.Exchange(
        peer, send.first(send_bytes), receive.first(receive_bytes)));
    send.remove_prefix(send_bytes);
    receive.remove_prefix(receive_bytes);
  }
  return absl::OkStatus();
}

template <typename Visit>
void AdasumReduction::VisitTensors(Range range, const Visit& visit) const {
  size_t begin = 0;
  for (size_t tensor = 0; tensor < tensor_ends_.size(); ++tensor) {
    const size_t end = tensor_ends_[tensor];
    const Range part = {std::max(begin, range.begin), std::min(end, range.end)};
    if (part.begin < part.end) visit(tensor, part);
    begin = end;
  }
}

}  // namespace hvdlite::collective
