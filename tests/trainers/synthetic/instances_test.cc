#include "trainers/synthetic/instances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>

#include "tools/support/cpu_shares.h"
#include "tools/support/input_error.h"
#include "tools/support/piped_child.h"
#include "tools/support/process.h"

namespace hvdlite::trainers {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(CpuSharesTest, NeighboursStayTogether) {
  EXPECT_THAT(DivideCpus({0, 1, 4, 5}, 2),
              ElementsAre(ElementsAre(0, 1), ElementsAre(4, 5)));
}

TEST(CpuSharesTest, FirstSharesGetWhatIsLeft) {
  EXPECT_THAT(
      DivideCpus({0, 1, 2, 3, 4}, 3),
      ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
}

TEST(CpuSharesTest, MoreSharesThanCpusAreRefusedNamingBoth) {
  EXPECT_THAT(
      [] {
        DivideCpus({0, 1}, 3);
      },
      ThrowsMessage<InputError>(
          AllOf(HasSubstr("--instances is 3"), HasSubstr("2 CPUs"))));
}

TEST(CpuSharesTest, BoundThreadMayUseTheseCpusOnly) {
  const std::vector<int> all = AllowedCpus();
  BindThread({all.back()});
  EXPECT_THAT(AllowedCpus(), ElementsAre(all.back()));
  BindThread(all);
  EXPECT_EQ(AllowedCpus(), all);
}

TEST(LinePrefixerTest, PrefixesWholeLinesHoweverTheyArrive) {
  LinePrefixer prefixer("> ");
  EXPECT_EQ(prefixer.Add("a"), "");
  EXPECT_EQ(prefixer.Add("b\nc\n\nd"), "> ab\n> c\n> \n");
  EXPECT_EQ(prefixer.Finish(), "> d\n");
  EXPECT_EQ(prefixer.Finish(), "");
}

TEST(ChildProcessTest, GivesItsOutputAndExitCode) {
  ChildProcess child("/bin/sh", {"sh", "-c", "echo $NAME; exit 3"},
                     {"NAME=value"});
  std::array<char, 16> buffer;
  EXPECT_EQ(read(child.output(), buffer.data(), buffer.size()), 6);
  EXPECT_EQ(std::string(buffer.data(), 6), "value\n");
  EXPECT_EQ(read(child.error(), buffer.data(), buffer.size()), 0);
  EXPECT_EQ(child.Wait(), 3);
}

TEST(ChildProcessTest, DiesOfSignalsThatItsParentCatches) {
  const base::SignalPipe signals;
  ChildProcess child("/bin/sh", {"sh", "-c", "echo; while :; do :; done"}, {});
  char newline = 0;
  EXPECT_EQ(read(child.output(), &newline, 1), 1);  // it runs
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(), 128 + SIGTERM);
}

TEST(ChildProcessTest, ProgramThatCannotBeStartedIsNamed) {
  EXPECT_THAT([] { ChildProcess("/nonexistent/program", {"program"}, {}); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("cannot start /nonexistent/program")));
}

TEST(InstancesTest, RanksOfALauncherAreRefusedNamingTheVariable) {
  EXPECT_THAT(
      [] {
        RequireOneProcess(base::FakeEnvironment({{"PMI_SIZE", "4"}}));
      },
      ThrowsMessage<InputError>(
          AllOf(HasSubstr("started 4"), HasSubstr("PMI_SIZE"))));
}

TEST(InstancesTest, OneRankOfALauncherIsAccepted) {
  RequireOneProcess(base::FakeEnvironment({}));
  RequireOneProcess(base::FakeEnvironment({{"OMPI_COMM_WORLD_SIZE", "1"}}));
}

}  // namespace
}  // namespace hvdlite::trainers
