// The allocations of a synchronous operation whose name is already known.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <hvdlite/ops.h>
#include <hvdlite/world.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <new>
#include <string>

namespace {

thread_local int64_t allocations = 0;

void* Allocate(size_t bytes) {
  ++allocations;
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace hvdlite {
namespace {

// Returns the smallest number of allocations of a call on this thread, after
// all automatic names are known and prepared, which takes two calls of each.
// The smallest number counts, since late ranks cause more messages.
int64_t LeastAllocations(const std::function<void()>& call) {
  constexpr int kAutomaticNames = 60;
  for (int i = 0; i < 3 * kAutomaticNames; ++i) call();
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 2 * kAutomaticNames; ++i) {
    const int64_t before = allocations;
    call();
    least = std::min(least, allocations - before);
  }
  return least;
}

// All allocations are in the negotiation's messages and decisions. The limit is
// the measured number plus two for lists that sometimes grow.
int64_t Limit() { return size() == 1 ? 11 : 18; }

TEST(AllocationsTest, RepeatedUnnamedAllreduce) {
  const at::Tensor tensor = at::ones({1});
  EXPECT_LE(LeastAllocations([&] { allreduce_(tensor); }), Limit());
}

TEST(AllocationsTest, RepeatedNamedAllreduce) {
  const at::Tensor tensor = at::ones({1});
  const auto options = AllreduceOptions()
                           .name("a name that does not fit into a string")
                           .op(ReduceOp::Sum);
  EXPECT_LE(LeastAllocations([&] { allreduce_(tensor, options); }), Limit());
}

}  // namespace
}  // namespace hvdlite
