#include "support/terminal.h"

#include <gtest/gtest.h>

#include "base/descriptor.h"

namespace hvdlite::support {
namespace {

constexpr char kRankStream[] = "/dev/pts/9";  // Open MPI's
constexpr char kTerminal[] = "/dev/pts/0";

const Ancestor kShell = {
    .name = "bash", .output = kTerminal, .arguments = {"bash"}};

Ancestor Mpirun(const std::string& output) {
  return {.name = "mpirun",
          .output = output,
          .arguments = {"mpirun", "-np", "2", "./train"}};
}

TEST(LauncherShowsTest, TrueOnTheLaunchersTerminal) {
  EXPECT_TRUE(LauncherShows(kRankStream, {Mpirun(kTerminal), kShell}));
  EXPECT_TRUE(LauncherShows("pipe:[7]", {Mpirun("/dev/tty1"), kShell}));
}

TEST(LauncherShowsTest, FalseForAFileOrPipe) {
  EXPECT_FALSE(LauncherShows(kRankStream, {Mpirun("/home/me/log"), kShell}));
  EXPECT_FALSE(LauncherShows(kRankStream, {Mpirun("pipe:[4711]"), kShell}));
  EXPECT_FALSE(LauncherShows(kRankStream, {Mpirun(""), kShell}));
}

TEST(LauncherShowsTest, TrueThroughAScriptOfTheRank) {
  const Ancestor script = {
      .name = "bash", .output = kRankStream, .arguments = {"bash", "run.sh"}};
  EXPECT_TRUE(LauncherShows(kRankStream, {script, Mpirun(kTerminal), kShell}));
  // The program's own output is a pipe to tee, or a file.
  EXPECT_FALSE(LauncherShows("pipe:[8]", {script, Mpirun(kTerminal), kShell}));
}

TEST(LauncherShowsTest, TrueThroughHydrasProxy) {
  const Ancestor proxy = {
      .name = "hydra_pmi_proxy", .output = "pipe:[5]", .arguments = {}};
  Ancestor mpiexec = {
      .name = "mpiexec.hydra", .output = kTerminal, .arguments = {"mpiexec"}};
  EXPECT_TRUE(LauncherShows("pipe:[6]", {proxy, mpiexec, kShell}));
  mpiexec.output = "/home/me/log";
  EXPECT_FALSE(LauncherShows("pipe:[6]", {proxy, mpiexec, kShell}));
}

TEST(LauncherShowsTest, FalseForDaemonsOfARemoteLauncher) {
  const Ancestor daemon = {
      .name = "orted", .output = "/dev/pts/3", .arguments = {"orted"}};
  const Ancestor init = {
      .name = "systemd", .output = "/dev/null", .arguments = {}};
  EXPECT_FALSE(LauncherShows(kRankStream, {daemon, init}));
  EXPECT_FALSE(LauncherShows(kRankStream, {}));
}

TEST(LauncherShowsTest, FalseIfTheLauncherKeepsACopyOrAddsPrefixes) {
  for (const char* word :
       {"--output-filename", "-outfile-pattern", "--tag-output", "--output",
        "-prepend-rank", "-l", "--timestamp-output"}) {
    Ancestor mpirun = Mpirun(kTerminal);
    mpirun.arguments.emplace_back(word);
    EXPECT_FALSE(LauncherShows(kRankStream, {mpirun, kShell})) << word;
  }
}

TEST(StreamIdentityTest, StreamsAreDistinguished) {
  const absl::StatusOr<base::Pipe> one = base::MakePipe();
  const absl::StatusOr<base::Pipe> other = base::MakePipe();
  ASSERT_TRUE(one.ok() && other.ok());
  const std::string identity = StreamIdentity(one->writer.get());
  EXPECT_EQ(StreamIdentity(one->writer.get()), identity);
  EXPECT_NE(StreamIdentity(other->writer.get()), identity);
  EXPECT_EQ(StreamIdentity(-1), "");
}

}  // namespace
}  // namespace hvdlite::support
