#include "collective/fusion/rounds.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "collective/fusion/tensor_stream.h"
#include "collective/fusion/wire.h"

namespace hvdlite::collective {
namespace {

absl::Status NotWholeElements(size_t tensor, absl::string_view what,
                              size_t bytes, size_t element_bytes) {
  return absl::InvalidArgumentError(absl::StrCat(
      "tensor ", tensor, " of the batch has ", bytes, " bytes", what,
      ", not a whole number of elements of ", element_bytes, " bytes"));
}

}  // namespace

absl::Status CheckTensors(absl::Span<const FusedTensor> tensors,
                          size_t element_bytes, bool input_optional) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t input_bytes = tensors[i].input.size();
    const size_t output_bytes = tensors[i].output.size();
    if (output_bytes % element_bytes != 0) {
      return NotWholeElements(i, "", output_bytes, element_bytes);
    }
    if (input_bytes != output_bytes && !(input_optional && input_bytes == 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", i, " of the batch has ", input_bytes,
                       " bytes of input, but ", output_bytes, " of output"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckReduction(const Reduction& reduction) {
  const DataType dtype = reduction.dtype;
  if (SizeOf(dtype) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the batch has the unknown data type ", static_cast<int>(dtype)));
  }
  if (!HasOp(dtype, reduction.op)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the batch is of ", NameOf(dtype), ", which has no ",
                     NameOf(reduction.op)));
  }
  return absl::OkStatus();
}

absl::Status CheckPartition(size_t tensor, absl::string_view what, size_t bytes,
                            absl::Span<const size_t> partition, int size,
                            size_t element_bytes) {
  if (partition.size() != static_cast<size_t>(size)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", tensor, " of the batch has a partition of its ", what,
        " for ", partition.size(), " ranks, not for ", size));
  }
  for (size_t rank = 0; rank < partition.size(); ++rank) {
    if (partition[rank] % element_bytes != 0) {
      return NotWholeElements(tensor,
                              absl::StrCat(" of ", what, " for rank ", rank),
                              partition[rank], element_bytes);
    }
  }
  const size_t sum =
      std::accumulate(partition.begin(), partition.end(), size_t{0});
  if (sum != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", tensor, " of the batch has ", bytes,
                     " bytes of ", what, ", but a partition of ", sum));
  }
  return absl::OkStatus();
}

absl::Status CheckPart(size_t tensor, absl::string_view what, size_t bytes,
                       absl::Span<const size_t> partition, int rank) {
  if (bytes == partition[rank]) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "tensor ", tensor, " of the batch has ", bytes, " bytes of ", what,
      ", but rank ", rank, " has a part of ", partition[rank]));
}

absl::Status CombineByChunks(
    absl::Span<std::byte> buffer, const Reduction& reduction, int num_inputs,
    absl::Span<const FusedTensor> tensors, PhaseTimer& timer,
    absl::FunctionRef<absl::Status(absl::Span<std::byte>, DataType)> combine) {
  const Wire wire(reduction, num_inputs);
  const TensorStream stream(tensors);
  const size_t chunk_bytes = wire.BytesThatFit(buffer.size());
  const auto chunk_part = [&](size_t begin, size_t bytes) {
    return buffer.subspan(wire.WireBytes(begin), wire.WireBytes(bytes));
  };

  size_t begin = 0;  // of this chunk
  size_t bytes = 0;  // of the tensors, in this chunk
  return RunRounds(
      NumRounds(stream.bytes(), chunk_bytes), timer,
      [&] {
        bytes = std::min(chunk_bytes, stream.bytes() - begin);
        stream.ForEachPiece(begin, bytes,
                            [&](const FusedTensor& piece, size_t at) {
                              const absl::Span<std::byte> to =
                                  chunk_part(at, piece.output.size());
                              if (piece.input.empty()) {
                                wire.PackNeutral(to);
                              } else {
                                wire.Pack(piece.input, to);
                              }
                            });
      },
      [&] { return combine(chunk_part(0, bytes), wire.type()); },
      [&] {
        stream.ForEachPiece(
            begin, bytes, [&](const FusedTensor& piece, size_t at) {
              wire.Unpack(chunk_part(at, piece.output.size()), piece.output);
            });
        begin += bytes;
      });
}

}  // namespace hvdlite::collective
