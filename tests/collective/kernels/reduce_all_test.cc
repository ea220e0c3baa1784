#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "collective/kernels/reduction_kernels.h"
#include "tests/collective/kernels/each_target.h"
#include "tests/collective/kernels/reduce_all_cases.h"

namespace hvdlite::testing {
namespace {

using collective::ChosenVectorUnit;
using collective::CopyScaled;
using collective::ReduceAll;
using collective::StoreHint;

constexpr size_t kMaxCount = 300;
constexpr size_t kMaxOffset = 64;  // bytes
constexpr std::byte kUntouched{0xa5};

// An array of elements that begins `offset` bytes after a multiple of 64. The
// bytes around it must not change.
class GuardedArray {
 public:
  GuardedArray(size_t offset, size_t bytes) : bytes_(bytes) {
    memory_.assign(bytes + kAround, kUntouched);
    const size_t past = reinterpret_cast<uintptr_t>(memory_.data()) % 64;
    begin_ = 64 + (64 - past) + offset;
  }
  GuardedArray(size_t offset, absl::Span<const std::byte> content)
      : GuardedArray(offset, content.size()) {
    std::copy(content.begin(), content.end(), data());
  }
  GuardedArray(GuardedArray&&) = default;

  std::byte* data() { return memory_.data() + begin_; }
  absl::Span<const std::byte> content() { return {data(), bytes_}; }
  bool HostEnvironmentAreUntouched() const {
    const auto is_untouched = [](absl::Span<const std::byte> part) {
      static const Bytes untouched(kAround, kUntouched);
      return part == absl::MakeConstSpan(untouched).subspan(0, part.size());
    };
    const absl::Span<const std::byte> all = memory_;
    return is_untouched(all.subspan(0, begin_)) &&
           is_untouched(all.subspan(begin_ + bytes_));
  }

 private:
  static constexpr size_t kAround = 4 * 64;  // bytes, before and after

  size_t bytes_;
  size_t begin_;
  Bytes memory_;
};

struct Case {
  DataType dtype;
  ReduceOp op;
  int divisor;
  size_t num_inputs;

  std::string Describe() const {
    return std::string(NameOf(dtype)) + " " + std::string(NameOf(op)) + " of " +
           std::to_string(num_inputs) + " inputs / " + std::to_string(divisor);
  }
};

// Inputs of a case, and the expected result of each element, independent of its
// position.
struct Elements {
  Elements(const Case& c, size_t count) {
    std::mt19937_64 random(count + c.num_inputs);
    for (size_t k = 0; k < c.num_inputs; ++k) {
      inputs.push_back(RandomElements(c.dtype, count, random));
    }
    for (size_t i = 0; i < count; ++i) {
      const Bytes element =
          ExpectedElement(c.dtype, c.op, c.divisor, inputs, i);
      expected.insert(expected.end(), element.begin(), element.end());
    }
    // A single input is copied if it is not scaled.
    if (c.num_inputs == 1 && c.divisor == 1) expected = inputs[0];
  }
  std::vector<Bytes> inputs;
  Bytes expected;
};

struct Layout {
  size_t skip = 0;       // elements of the case before the first of the arrays
  size_t count = 0;      // elements
  size_t in_offset = 0;  // bytes; input k: plus k elements
  size_t out_offset = 0;
  size_t num_outputs = 1;
  // Output j is input aliases[j], if there is such an input.
  std::vector<size_t> aliases;
  StoreHint hint = StoreHint::kCached;
};

void ExpectReduction(const Case& c, const Elements& elements,
                     const Layout& layout) {
  const size_t size = SizeOf(c.dtype);
  const size_t bytes = layout.count * size;
  const auto part = [&](const Bytes& all) {
    return absl::MakeConstSpan(all).subspan(layout.skip * size, bytes);
  };
  std::vector<GuardedArray> inputs;
  std::vector<const std::byte*> in;
  for (size_t k = 0; k < c.num_inputs; ++k) {
    inputs.emplace_back((layout.in_offset + k * size) % kMaxOffset,
                        part(elements.inputs[k]));
    in.push_back(inputs.back().data());
  }
  std::vector<GuardedArray> outputs;
  outputs.reserve(layout.num_outputs);
  std::vector<std::byte*> out;
  std::set<size_t> overwritten;
  for (size_t j = 0; j < layout.num_outputs; ++j) {
    if (j < layout.aliases.size() && layout.aliases[j] < c.num_inputs &&
        overwritten.insert(layout.aliases[j]).second) {
      out.push_back(inputs[layout.aliases[j]].data());
    } else {
      outputs.emplace_back(layout.out_offset, bytes);
      out.push_back(outputs.back().data());
    }
  }
  ReduceAll(c.op, c.dtype, {1, c.divisor}, in, out, bytes, layout.hint);

  const auto where = [&] {
    return c.Describe() + ", " + std::to_string(layout.count) +
           " elements, offsets " + std::to_string(layout.in_offset) + " and " +
           std::to_string(layout.out_offset) + ", " +
           std::to_string(layout.num_outputs) + " outputs";
  };
  for (const std::byte* output : out) {
    ASSERT_TRUE(SameButForNans(c.dtype, absl::MakeConstSpan(output, bytes),
                               part(elements.expected)))
        << where();
  }
  for (size_t k = 0; k < c.num_inputs; ++k) {
    ASSERT_TRUE(overwritten.contains(k) ||
                inputs[k].content() == part(elements.inputs[k]))
        << where();
    ASSERT_TRUE(inputs[k].HostEnvironmentAreUntouched()) << where();
  }
  for (const GuardedArray& output : outputs) {
    ASSERT_TRUE(output.HostEnvironmentAreUntouched()) << where();
  }
}

class ReduceAllTest : public EachTargetTest {};

TEST(VectorTargetsTest, BestTargetOfTheCpuIsUsed) {
  const std::vector<Target> targets = CompiledTargets();
  EXPECT_EQ(UseTargets(0), targets[0].name);
  std::set<std::string> names;
  for (const Target& target : targets) names.insert(target.name);
  for (const int64_t bit : {HWY_AVX3, HWY_AVX2, HWY_SVE, HWY_NEON}) {
    // Targets below the baseline (with a higher bit) are not needed.
    if ((hwy::SupportedTargets() & bit) != 0 && bit <= HWY_STATIC_TARGET) {
      EXPECT_TRUE(names.contains(hwy::TargetName(bit))) << hwy::TargetName(bit);
    }
  }
  // dev/check_a64fx reads this line.
  std::cout << "Vector unit: " << targets[0].name << " of "
            << ChosenVectorUnit().bytes << " bytes\n";
}

TEST_P(ReduceAllTest, EveryLengthTypeAndNumberOfArraysMatchesTheReference) {
  for (const DataType dtype : AllDataTypes()) {
    for (const ReduceOp op : ReduceOpsOf(dtype)) {
      for (const int divisor : {1, 2, 3}) {
        for (const size_t num_inputs : {1, 2, 3, 4, 5, 17}) {
          const Case c{dtype, op, divisor, num_inputs};
          const Elements elements(c, kMaxCount + 7);
          // With a step of 7, lengths have every remainder of a vector's
          // length.
          const size_t step = num_inputs == 2 ? 1 : 7;
          for (size_t count = num_inputs == 2 ? 0 : num_inputs;
               count <= kMaxCount; count += step) {
            Layout layout;
            layout.skip = count % 8;
            layout.count = count;
            layout.in_offset = count * 5 * SizeOf(dtype) % kMaxOffset;
            layout.out_offset = count * 3 * SizeOf(dtype) % kMaxOffset;
            layout.num_outputs = 1 + count % 5;
            // Each input in turn, and finally no input.
            layout.aliases = {count % (num_inputs + 1),
                              (count + 2) % (num_inputs + 3)};
            ExpectReduction(c, elements, layout);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(ReduceAllTest, EveryOffsetOfEveryLengthMatchesTheReference) {
  for (const DataType dtype : AllDataTypes()) {
    const Case c{dtype, ReduceOp::kSum, 1, 2};
    const Elements elements(c, kMaxCount);
    const size_t size = SizeOf(dtype);
    for (size_t offset = 0; offset < kMaxOffset; offset += size) {
      for (size_t count = offset / size % 3; count <= kMaxCount; count += 3) {
        Layout layout;
        layout.count = count;
        layout.in_offset = (count * 7 * size) % kMaxOffset;
        layout.out_offset = offset;
        ExpectReduction(c, elements, layout);
        layout.in_offset = offset;
        layout.aliases = {count % 2};
        ExpectReduction(c, elements, layout);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Long enough to be stored past the cache, and longer than a block of the plain
// loops.
TEST_P(ReduceAllTest, StreamedResultsOfEveryAlignmentMatchTheReference) {
  for (const DataType dtype : AllDataTypes()) {
    const size_t size = SizeOf(dtype);
    const size_t max_count = 9100 / size;
    for (const Case& c :
         {Case{dtype, ReduceOp::kSum, 1, 1},
          Case{dtype, OpOrSum(dtype, ReduceOp::kMax), 3, 1},
          Case{dtype, ReduceOp::kSum, 1, 2},
          Case{dtype, OpOrSum(dtype, ReduceOp::kProduct), 2, 3}}) {
      const Elements elements(c, max_count);
      size_t turn = 0;
      for (size_t offset = 0; offset < kMaxOffset; offset += size) {
        for (const size_t count : {4095 / size, 4096 / size + 1, max_count}) {
          ++turn;
          Layout layout;
          layout.count = count;
          layout.in_offset = turn * 7 * size % kMaxOffset;
          layout.out_offset = offset;
          layout.num_outputs = 1 + turn % 3;
          layout.aliases = {turn % (c.num_inputs + 2)};
          layout.hint = StoreHint::kStreaming;
          ExpectReduction(c, elements, layout);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(ReduceAllTest, StreamedOutputsMayHaveDifferentAlignments) {
  for (const DataType dtype : AllDataTypes()) {
    const Case c{dtype, ReduceOp::kSum, 1, 2};
    const size_t size = SizeOf(dtype);
    const size_t count = 9000 / size;
    const Elements elements(c, count);
    for (size_t offset = 0; offset < kMaxOffset; offset += size) {
      GuardedArray a(offset, count * size);
      GuardedArray b((offset * 3 + size) % kMaxOffset, count * size);
      GuardedArray d(offset, count * size);
      ReduceAll(c.op, dtype, 1,
                {elements.inputs[0].data(), elements.inputs[1].data()},
                {a.data(), b.data(), d.data()}, count * size,
                StoreHint::kStreaming);
      for (GuardedArray* output : {&a, &b, &d}) {
        ASSERT_TRUE(
            SameButForNans(dtype, output->content(), elements.expected));
        ASSERT_TRUE(output->HostEnvironmentAreUntouched());
      }
    }
  }
}

TEST_P(ReduceAllTest, MoreThan64OutputsAreWritten) {
  const Case c{DataType::kFloat32, ReduceOp::kSum, 1, 2};
  const Elements elements(c, 2000);
  for (const StoreHint hint : {StoreHint::kCached, StoreHint::kStreaming}) {
    Layout layout;
    layout.count = 2000;
    layout.num_outputs = 70;
    layout.hint = hint;
    ExpectReduction(c, elements, layout);
  }
}

TEST_P(ReduceAllTest, SixteenBitFloatsAreRoundedOnceAtTheEnd) {
  // 1 + 2^-12 + 2^-12 ... would stay 1 if rounded after each addition.
  for (const DataType dtype : {DataType::kFloat16, DataType::kBFloat16}) {
    const Bytes one = Encode(dtype, std::vector<double>(100, 1.0));
    const Bytes small = Encode(dtype, std::vector<double>(100, 0x1p-12));
    std::vector<const std::byte*> inputs(65, small.data());
    inputs[0] = one.data();
    Bytes out(one.size());
    ReduceAll(ReduceOp::kSum, dtype, 1, inputs, {out.data()}, out.size());
    EXPECT_EQ(out, Encode(dtype, std::vector<double>(100, 1 + 0x1p-6)));
  }
}

TEST_P(ReduceAllTest, EmptyInputWritesNothing) {
  std::byte guard = kUntouched;
  ReduceAll(ReduceOp::kSum, DataType::kFloat32, 2, {&guard, &guard}, {&guard},
            0);
  ReduceAll(ReduceOp::kSum, DataType::kFloat32, 2, {&guard}, {}, 4);
  CopyScaled(DataType::kFloat32, 2, {}, {}, StoreHint::kStreaming);
  EXPECT_EQ(guard, kUntouched);
}

TEST_P(ReduceAllTest, StreamedCopiesOfEveryOffsetAreExact) {
  std::mt19937_64 random(3);
  const Bytes in = RandomElements(DataType::kUint8, 10000, random);
  for (size_t offset = 0; offset < kMaxOffset; ++offset) {
    for (const size_t bytes : {0u, 1u, 4095u, 4096u, 5003u, 9871u}) {
      const auto part = absl::MakeConstSpan(in).subspan(offset * 2, bytes);
      GuardedArray out(offset, bytes);
      CopyScaled(DataType::kUint8, 1, part, absl::MakeSpan(out.data(), bytes),
                 StoreHint::kStreaming);
      ASSERT_EQ(out.content(), part);
      ASSERT_TRUE(out.HostEnvironmentAreUntouched());
    }
  }
}

HVDLITE_INSTANTIATE_FOR_EACH_TARGET(ReduceAllTest);

}  // namespace
}  // namespace hvdlite::testing
