#include "tools/hvdlite_bench/test_values.h"

namespace hvdlite::tools {
namespace {

// A prime: no size that is a power of two is a multiple of it.
constexpr int64_t kPeriod = 8191;
// How far the ranks' inputs are shifted against each other.
constexpr int64_t kShift = 1009;

}  // namespace

TestValues::TestValues(int rank, int ranks)
    : inputs_(kPeriod, 0), sums_(kPeriod, 0) {
  for (int64_t i = 0; i < kPeriod; ++i) {
    inputs_[i] = static_cast<float>((i + rank * kShift) % kPeriod);
    for (int64_t other = 0; other < ranks; ++other) {
      sums_[i] += static_cast<float>((i + other * kShift) % kPeriod);
    }
  }
}

void TestValues::Fill(absl::Span<float> data, int64_t begin) const {
  int64_t at = begin % kPeriod;
  for (float& value : data) {
    value = inputs_[at];
    if (++at == kPeriod) at = 0;
  }
}

int64_t TestValues::CountWrong(absl::Span<const float> data,
                               int64_t begin) const {
  int64_t wrong = 0;
  int64_t at = begin % kPeriod;
  for (const float value : data) {
    if (value != sums_[at]) ++wrong;
    if (++at == kPeriod) at = 0;
  }
  return wrong;
}

}  // namespace hvdlite::tools
