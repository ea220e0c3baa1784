// Tensors with more elements than an int can count.
#include <gtest/gtest.h>

#include "tests/torch_plugin/rank_values.h"

namespace hvdlite {
namespace {

TEST(LargeTensorTest, MoreElementsThanAnIntCountsAreReducedInPlace) {
  constexpr int64_t kCount = (int64_t{1} << 31) + 5;
  at::Tensor tensor = at::full({kCount}, rank() + 1, at::kChar);
  // Marks at the ends and after element 2^31.
  for (const int64_t i : {int64_t{0}, kCount / 2, kCount - 6, kCount - 1}) {
    tensor[i] = 10 + rank();
  }
  allreduce_(tensor, AllreduceOptions().op(ReduceOp::Sum));
  int marks = 0;
  int others = 0;
  for (int i = 0; i < size(); ++i) {
    marks += 10 + i;
    others += i + 1;
  }
  for (const int64_t i : {int64_t{0}, kCount / 2, kCount - 6, kCount - 1}) {
    EXPECT_EQ(tensor[i].item<int>(), marks) << i;
    tensor[i] = others;
  }
  // Compare in pieces to save memory.
  for (const at::Tensor& piece : tensor.split(int64_t{1} << 24)) {
    EXPECT_TRUE(piece.eq(others).all().item<bool>());
  }
}

}  // namespace
}  // namespace hvdlite
