#include "collective/kernels/reduction_kernels.h"

#include <algorithm>
#include <cstring>

#include "collective/kernels/element_operations.h"
#include "collective/kernels/element_types.h"
#include "collective/kernels/target_loops.h"

namespace hvdlite::collective {

void ReduceAll(ReduceOp op, DataType dtype, double factor,
               absl::Span<const std::byte* const> inputs,
               absl::Span<std::byte* const> outputs, size_t bytes,
               StoreHint hint) {
  if (bytes == 0 || outputs.empty()) return;
  if (inputs.size() == 1 && factor == 1) {
    for (std::byte* const output : outputs) {
      CopyScaled(dtype, 1, absl::MakeConstSpan(inputs[0], bytes),
                 absl::MakeSpan(output, bytes), hint);
    }
    return;
  }
  ReduceLoops(op, dtype, factor, inputs, outputs, bytes, hint);
}

void Reduce(ReduceOp op, DataType dtype, absl::Span<const std::byte> in,
            absl::Span<std::byte> inout) {
  const std::byte* const inputs[] = {inout.data(), in.data()};
  std::byte* const outputs[] = {inout.data()};
  ReduceAll(op, dtype, 1, inputs, outputs, inout.size());
}

void CopyScaled(DataType dtype, double factor, absl::Span<const std::byte> in,
                absl::Span<std::byte> out, StoreHint hint) {
  if (out.empty()) return;
  if (factor != 1) {
    const std::byte* const inputs[] = {in.data()};
    std::byte* const outputs[] = {out.data()};
    ReduceLoops(ReduceOp::kSum, dtype, factor, inputs, outputs, out.size(),
                hint);
  } else if (in.data() == out.data()) {
    return;
  } else if (hint == StoreHint::kStreaming) {
    CopyLoops(in, out);
  } else {
    std::memcpy(out.data(), in.data(), out.size());
  }
}

void ConvertScaled(DataType from, DataType to, double factor,
                   absl::Span<const std::byte> in, absl::Span<std::byte> out,
                   StoreHint hint) {
  if (from == to) return CopyScaled(from, factor, in, out, hint);
  ConvertLoops(from, to, factor, in, out, hint);
}

void FillNeutral(ReduceOp op, DataType dtype, absl::Span<std::byte> out) {
  VisitElementType(dtype, [&](auto element) {
    using T = decltype(element);
    VisitReduceOp(op, [&](auto constant) {
      std::fill_n(reinterpret_cast<T*>(out.data()), out.size() / sizeof(T),
                  Neutral<constant.value, T>());
    });
  });
}

}  // namespace hvdlite::collective
