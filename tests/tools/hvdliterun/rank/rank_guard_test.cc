#include "tools/hvdliterun/rank/rank_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <latch>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/environment.h"
#include "support/process.h"
#include "support/processor.h"
#include "tests/testing/fakes/machine_files.h"

namespace hvdlite::launch {
namespace {

// A program that runs until its input ends, in a group of its own.
class RankGuardTest : public ::testing::Test {
 protected:
  RankGuardTest() {
    base::Pipe input = base::MakePipe().value();
    program_ = support::StartProcess({.command = {"cat"},
                                      .environment = {},
                                      .input = input.reader.get(),
                                      .own_group = true})
                   .value();
    input_ = std::move(input.writer);
    plan_.cpus = support::AllowedCpus();
  }
  ~RankGuardTest() override {
    input_ = base::Descriptor();
    EXPECT_EQ(support::WaitForExit(program_), 0);  // nobody has killed it
  }

  RankPlan plan_;
  const Variables variables_{base::FakeEnvironment({})};
  std::string complaints_;
  pid_t program_ = -1;
  base::Descriptor input_;
};

TEST_F(RankGuardTest, EndsAtOnceWithTheProgram) {
  RankGuard guard(plan_, variables_, "", [this](absl::string_view text) {
    complaints_.append(text.data(), text.size());
  });
  ASSERT_TRUE(guard.Begin(program_, std::nullopt).ok());
  guard.End();
  EXPECT_EQ(complaints_, "");
}

TEST_F(RankGuardTest, AProgramOnOtherCpusIsTold) {
  plan_.cpus = {plan_.cpus.back() + 1};
  std::latch told(1);
  RankGuard guard(plan_, variables_, "", [&](absl::string_view text) {
    complaints_.append(text.data(), text.size());
    told.count_down();
  });
  ASSERT_TRUE(guard.Begin(program_, std::nullopt).ok());
  told.wait();
  guard.End();
  EXPECT_THAT(complaints_, ::testing::HasSubstr("its start, thread "));
}

TEST(PassSignalTest, AStatusThatEndedWithItsProcessIsNoHandler) {
  const pid_t leader = support::StartProcess({.command = {"sleep", "infinity"},
                                              .environment = {},
                                              .own_group = true,
                                              .signal_on_death = SIGKILL})
                           .value();
  testing::MachineFiles tree;
  const std::string folder = absl::StrCat("/proc/", leader);
  tree.Write(folder + "/stat",
             absl::StrCat(leader, " (sleep) S 1 ", leader, " 7 0"));
  // It opens, and then there is nothing to read.
  tree.Write(folder + "/status/is a folder", "");
  PassSignal(SIGUSR1, leader, tree.files());
  EXPECT_EQ(support::WaitForExit(leader), 128 + SIGTERM);
}

}  // namespace
}  // namespace hvdlite::launch
