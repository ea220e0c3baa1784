// main() of tests whose ranks are processes: every rank runs the same tests in
// one world.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  hvdlite::init();
  const int result = RUN_ALL_TESTS();
  hvdlite::shutdown();
  return result;
}
