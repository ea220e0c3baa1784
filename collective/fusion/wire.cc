#include "collective/fusion/wire.h"

#include <algorithm>
#include <cmath>

#include "collective/kernels/reduction_kernels.h"

namespace hvdlite::collective {

Wire::Wire(const Reduction& reduction, int num_inputs)
    : dtype_(reduction.dtype),
      op_(reduction.op),
      type_(WireType(reduction.dtype, reduction.compression)),
      prescale_(reduction.prescale),
      postscale_(reduction.factor()),
      element_bytes_(SizeOf(reduction.dtype)),
      wire_element_bytes_(SizeOf(type_)) {
  if (op_ != ReduceOp::kSum || !IsNarrowFloat(type_)) return;
  const double unit = type_ == dtype_ ? std::abs(prescale_) : 1;
  const double scale = ScaleOfInputs(postscale_.value(), num_inputs * unit);
  prescale_ *= scale;
  postscale_ = postscale_.value() / scale;
}

void Wire::Pack(absl::Span<const std::byte> in,
                absl::Span<std::byte> wire) const {
  ConvertScaled(dtype_, type_, prescale_, in, wire);
}

void Wire::PackNeutral(absl::Span<std::byte> wire) const {
  FillNeutral(op_, type_, wire);
}

void Wire::Unpack(absl::Span<const std::byte> wire,
                  absl::Span<std::byte> out) const {
  ConvertScaled(type_, dtype_, postscale_, wire, out);
}

void Wire::PackAndUnpack(absl::Span<const std::byte> in,
                         absl::Span<std::byte> out) const {
  if (type_ == dtype_) {  // `out` serves as the wire
    if (in.empty()) {
      PackNeutral(out);
    } else {
      Pack(in, out);
    }
    return Unpack(out, out);
  }
  alignas(64) std::byte memory[4096];
  const size_t block_bytes = BytesThatFit(sizeof(memory));
  for (size_t begin = 0; begin < out.size(); begin += block_bytes) {
    const size_t bytes = std::min(block_bytes, out.size() - begin);
    const absl::Span<std::byte> wire(memory, WireBytes(bytes));
    if (in.empty()) {
      PackNeutral(wire);
    } else {
      Pack(in.subspan(begin, bytes), wire);
    }
    Unpack(wire, out.subspan(begin, bytes));
  }
}

}  // namespace hvdlite::collective
