// Reduction: what an allreduce or reducescatter does with the elements.
#pragma once

#include "collective/kernels/compression.h"
#include "collective/kernels/data_type.h"
#include "collective/kernels/reduce_op.h"

namespace hvdlite::collective {

// postscale * op over ranks(prescale * x). Scaling of integers and bools is
// done in double and truncated toward zero (see CopyScaled).
struct Reduction {
  DataType dtype = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  double prescale = 1;
  double postscale = 1;
  Compression compression = Compression::kNone;
};

}  // namespace hvdlite::collective
