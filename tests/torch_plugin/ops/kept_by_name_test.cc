#include "torch_plugin/ops/kept_by_name.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace hvdlite::internal {
namespace {

// Counts its living objects.
struct Counted {
  explicit Counted(int n) : number(n) { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  const int number;
  static inline int alive = 0;
};

using Kept = KeptByName<Counted>;

TEST(KeptByNameTest, ValueIsTakenByOneCallerAtATime) {
  Kept kept(4);
  EXPECT_EQ(kept.Take("x", 0), nullptr);
  kept.Put("x", 0, std::make_unique<Counted>(1));
  EXPECT_EQ(kept.Take("x", 3), nullptr);
  std::unique_ptr<Counted> taken = kept.Take("x", 0);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->number, 1);
  EXPECT_EQ(kept.Take("x", 0), nullptr);
  // The value that another caller has made meanwhile.
  kept.Put("x", 0, std::make_unique<Counted>(2));
  kept.Put("x", 0, std::move(taken));
  EXPECT_EQ(Counted::alive, 1);
  EXPECT_NE(kept.Take("x", 0), nullptr);
}

TEST(KeptByNameTest, NamesThatAreUsedOnceTakeNoMoreThanTheLimit) {
  Kept kept(16);
  for (int i = 0; i < 10000; ++i) {
    EXPECT_EQ(kept.Take("once." + std::to_string(i), 0), nullptr);
    kept.Put("once." + std::to_string(i), 0, std::make_unique<Counted>(i));
    ASSERT_LE(Counted::alive, 16);
  }
}

TEST(KeptByNameTest, NamesInUseOutliveNamesThatAreUsedOnce) {
  Kept kept(16);
  kept.Put("often", 0, std::make_unique<Counted>(-1));
  for (int i = 0; i < 1000; ++i) {
    std::unique_ptr<Counted> often = kept.Take("often", 0);
    ASSERT_NE(often, nullptr) << i;
    kept.Put("often", 0, std::move(often));
    kept.Put("once." + std::to_string(i), 0, std::make_unique<Counted>(i));
  }
}

TEST(KeptByNameTest, NameCanBeDroppedWhileACallerHasItsValue) {
  Kept kept(1);
  kept.Put("x", 0, std::make_unique<Counted>(1));
  std::unique_ptr<Counted> taken = kept.Take("x", 0);
  kept.Put("y", 0, std::make_unique<Counted>(2));
  kept.Put("z", 0, std::make_unique<Counted>(3));
  EXPECT_EQ(Counted::alive, 2);
  kept.Put("x", 0, std::move(taken));
  EXPECT_NE(kept.Take("x", 0), nullptr);
}

}  // namespace
}  // namespace hvdlite::internal
