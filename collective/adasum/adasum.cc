#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "collective/adasum/adasum_kernels.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "collective/fusion/rounds.h"
#include "collective/fusion/wire.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {
namespace {

// Which ranks combine their vectors; see FusedAdasum().
class AdasumTree {
 public:
  explicit AdasumTree(int size);

  int num_leaves() const { return num_leaves_; }
  int LeafOf(int rank) const {
    return rank < 2 * extra_ ? rank / 2 : rank - extra_;
  }
  // The rank that represents a leaf: the lower one of two.
  int RankOf(int leaf) const {
    return leaf < extra_ ? 2 * leaf : leaf + extra_;
  }
  // The rank with which `rank` shares its leaf; -1 if there is none.
  int LeafMate(int rank) const { return rank < 2 * extra_ ? rank ^ 1 : -1; }

 private:
  int num_leaves_;
  int extra_;
};

// Reduces one bucket on one rank. Vectors of lower ranks are a, those of higher
// ranks are b. At each level of the tree, two ranks that hold the same range of
// two nodes swap halves, and each combines one half. The scalar products of a
// tensor are summed over all ranks of the two nodes, in the same order on every
// rank. Afterwards the ranges are swapped back. Keeps references to its
// arguments.
class AdasumReduction {
 public:
  // `vector` holds all tensors of this rank back to back, of `dtype` (a float
  // type); tensor i ends at byte tensor_ends[i]. `received` is a buffer of the
  // same size for data from other ranks. Vectors travel in chunks of at most
  // `chunk_bytes`. `next_chunk` is called before each chunk except the first,
  // with the completed fraction of this rank's traffic; an error from it ends
  // the reduction.
  AdasumReduction(Communicator& communicator, DataType dtype,
                  absl::Span<std::byte> vector, absl::Span<std::byte> received,
                  absl::Span<const size_t> tensor_ends, size_t chunk_bytes,
                  absl::FunctionRef<absl::Status(double share)> next_chunk);

  // Puts the root's vector into `vector`. All ranks call it with the same
  // number of bytes.
  absl::Status Run();

 private:
  struct Range {  // bytes of `vector`
    size_t begin;
    size_t end;
    size_t size() const { return end - begin; }
  };

  absl::Status CombineOnLeaf(int leaf_mate);
  absl::Status CombineLeaves();
  absl::Status CombineLevel(int distance, Range kept, Range given);

  // Scalar products for the part of every tensor in `range`: of this rank's
  // vector and of `received_`, which holds the `range` of another node.
  std::vector<ScalarProducts> Multiply(Range range, bool received_is_b) const;
  absl::Status SumOverNodes(int distance,
                            std::vector<ScalarProducts>& products);
  void Combine(Range range, bool received_is_b,
               absl::Span<const ScalarProducts> products);

  absl::Status Swap(int peer, absl::Span<const std::byte> send,
                    absl::Span<std::byte> receive);
  // Calls visit(tensor, its part in `range`) for each part that is not empty.
  template <typename Visit>
  void VisitTensors(Range range, const Visit& visit) const;
  absl::Span<std::byte> BytesOf(Range range) const {
    return vector_.subspan(range.begin, range.size());
  }

  Communicator& communicator_;
  const AdasumTree tree_;
  const int leaf_;
  const DataType dtype_;
  const absl::Span<std::byte> vector_;
  const absl::Span<std::byte> received_;
  const absl::Span<const size_t> tensor_ends_;
  const size_t chunk_bytes_;
  const absl::FunctionRef<absl::Status(double share)> next_chunk_;
  const double bytes_to_move_;  // sent and received by this rank
  double moved_bytes_ = 0;
};

AdasumTree::AdasumTree(int size)
    : num_leaves_(
          static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))),
      extra_(size - num_leaves_) {}

// Traffic of a rank, sent plus received, as a multiple of the vector. The
// leaves exchange what they keep, which halves at each level: 1 + 1/2 + 1/4 +
// ... on the way up, and the same on the way back.
double BytesToMove(const AdasumTree& tree, int rank) {
  const int mate = tree.LeafMate(rank);
  const double whole = mate >= 0 ? 2 : 0;  // to the mate, and back
  if (mate >= 0 && mate < rank) return whole;
  return whole + 4 * (1 - 1.0 / tree.num_leaves());
}

AdasumReduction::AdasumReduction(Communicator& communicator, DataType dtype,
                                 absl::Span<std::byte> vector,
                                 absl::Span<std::byte> received,
                                 absl::Span<const size_t> tensor_ends,
                                 size_t chunk_bytes,
                                 absl::FunctionRef<absl::Status(double)>
                                     next_chunk)
    : communicator_(communicator),
      tree_(communicator.size()),
      leaf_(tree_.LeafOf(communicator.rank())),
      dtype_(dtype),
      vector_(vector),
      received_(received),
      tensor_ends_(tensor_ends),
      chunk_bytes_(chunk_bytes),
      next_chunk_(next_chunk),
      bytes_to_move_(BytesToMove(tree_, communicator.rank()) *
                     static_cast<double>(vector.size())) {}

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
      Swap(leaf_mate, {}, received_.first(all.size())));
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
                               received_.first(kept.size())));
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
        received_.subspan(part.begin - range.begin, part.size());
    products[tensor] = received_is_b ? MultiplyVectors(dtype_, own, received)
                                     : MultiplyVectors(dtype_, received, own);
  });
  return products;
}

// Recursive doubling among the 2 * distance leaves of both nodes. Two ranks
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
        received_.subspan(part.begin - range.begin, part.size()),
        BytesOf(part));
  });
}

absl::Status AdasumReduction::Swap(int peer, absl::Span<const std::byte> send,
                                   absl::Span<std::byte> receive) {
  while (!send.empty() || !receive.empty()) {
    if (moved_bytes_ > 0) {
      HVDLITE_RETURN_IF_ERROR(
          next_chunk_(std::min(moved_bytes_ / bytes_to_move_, 1.0)));
    }
    const size_t send_bytes = std::min(send.size(), chunk_bytes_);
    const size_t receive_bytes = std::min(receive.size(), chunk_bytes_);
    HVDLITE_RETURN_IF_ERROR(communicator_.Exchange(
        peer, send.first(send_bytes), receive.first(receive_bytes)));
    send.remove_prefix(send_bytes);
    receive.remove_prefix(receive_bytes);
    moved_bytes_ += static_cast<double>(send_bytes + receive_bytes);
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

absl::Status CheckFloatType(DataType dtype) {
  if (IsFloat(dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Adasum needs tensors of floating-point numbers, not ",
                   NameOf(dtype), "; use another reduction for them"));
}

}  // namespace

absl::Status FusedAdasum(const FusionResources& resources,
                         const Reduction& reduction,
                         absl::Span<const FusedTensor> tensors,
                         const FusionHooks& hooks) {
  HVDLITE_RETURN_IF_ERROR(CheckFloatType(reduction.dtype));
  HVDLITE_RETURN_IF_ERROR(CheckTensors(tensors, SizeOf(reduction.dtype),
                                       /*input_optional=*/true));
  Reduction sum = reduction;
  sum.op = ReduceOp::kSum;  // its neutral elements are zeros
  const Wire wire(sum, resources.communicator.size());
  if (resources.communicator.size() == 1) {
    for (const FusedTensor& tensor : tensors) {
      wire.PackAndUnpack(tensor.input, tensor.output);
    }
    return absl::OkStatus();
  }

  std::vector<size_t> ends;  // ends of the tensors in the vector
  for (const FusedTensor& tensor : tensors) {
    ends.push_back((ends.empty() ? 0 : ends.back()) +
                   wire.WireBytes(tensor.output.size()));
  }
  if (ends.empty() || ends.back() == 0) return absl::OkStatus();

  PhaseTimer timer(resources.clock, hooks);
  const size_t bytes = ends.back();
  constexpr size_t kCacheLine = 64;
  const size_t received_begin =
      (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  const absl::Span<std::byte> memory =
      resources.buffer.Scratch(received_begin + bytes);
  const absl::Span<std::byte> vector = memory.first(bytes);
  const absl::Span<std::byte> received = memory.subspan(received_begin, bytes);
  const auto part_of = [&](size_t i) {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    return vector.subspan(begin, ends[i] - begin);
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].input.empty()) {
      wire.PackNeutral(part_of(i));
    } else {
      wire.Pack(tensors[i].input, part_of(i));
    }
  }
  int64_t chunk = 0;
  timer.PhaseOver(FusionPhase::kPack, chunk);

  const auto next_chunk = [&](double share) {
    timer.PhaseOver(FusionPhase::kCommunicate, chunk++);
    return timer.Pause(share);
  };
  HVDLITE_RETURN_IF_ERROR(
      AdasumReduction(resources.communicator, wire.type(), vector, received,
                      ends, resources.buffer.bytes().size(), next_chunk)
          .Run());
  timer.PhaseOver(FusionPhase::kCommunicate, chunk);

  for (size_t i = 0; i < tensors.size(); ++i) {
    wire.Unpack(part_of(i), tensors[i].output);
  }
  timer.PhaseOver(FusionPhase::kUnpack, chunk);
  return absl::OkStatus();
}

}  // namespace hvdlite::collective
