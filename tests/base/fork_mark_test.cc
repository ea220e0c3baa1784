#include "base/fork_mark.h"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "gtest/gtest.h"

namespace hvdlite::base {
namespace {

// The answer of `question` in a forked child process.
bool InForkedProcess(const std::function<bool()>& question) {
  const pid_t child = fork();
  if (child == 0) _exit(question() ? 1 : 0);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status) == 1;
}

TEST(ForkMarkTest, ForkIsDetected) {
  const ForkMark mark;
  EXPECT_FALSE(mark.forked());
  EXPECT_TRUE(InForkedProcess([&] { return mark.forked(); }));
  EXPECT_FALSE(mark.forked());
}

TEST(ForkMarkTest, ForkOfAForkIsDetected) {
  const ForkMark mark;
  EXPECT_TRUE(InForkedProcess(
      [&] { return InForkedProcess([&] { return mark.forked(); }); }));
}

TEST(ForkMarkTest, ForkedProcessCanMakeItsOwnMarks) {
  EXPECT_FALSE(InForkedProcess([] { return ForkMark().forked(); }));
}

struct CountsItsEnd {
  ~CountsItsEnd() { ++*ends; }
  int* ends;
};

TEST(ForkMarkTest, ObjectsAreDestroyedOnlyInTheProcessThatMadeThem) {
  int ends = 0;
  std::unique_ptr<CountsItsEnd, DeleteUnlessForked<CountsItsEnd>> object(
      new CountsItsEnd{&ends});
  EXPECT_FALSE(InForkedProcess([&] {
    object.reset();
    return ends != 0;
  }));
  object.reset();
  EXPECT_EQ(ends, 1);
}

}  // namespace
}  // namespace hvdlite::base
