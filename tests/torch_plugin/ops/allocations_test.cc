// What a synchronous operation allocates once its name is known.
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

// The least that a call allocates on this thread, once all automatic names are
// known, which takes two calls of each, and prepared for. The least, since
// ranks that are late make for more messages.
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

// All of them in the negotiation's messages and decisions: as measured, and two
// more for lists that grow now and then.
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
