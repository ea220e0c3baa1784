#include "tools/hvdliterun/rank/launcher_noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace hvdlite::launch {
namespace {

using ::testing::IsEmpty;

const std::string kRule = std::string(74, '-') + "\n";

const std::string kOpenMpi =
    kRule +
    "Primary job  terminated normally, but 1 process returned\n"
    "a non-zero exit code. Per user-direction, the job has been aborted.\n" +
    kRule;

class LauncherNoiseTest : public ::testing::Test {
 protected:
  std::string passed_;
  std::string left_out_;
  LauncherNoise noise_{
      [this](absl::string_view text) { absl::StrAppend(&passed_, text); },
      [this](absl::string_view text) { absl::StrAppend(&left_out_, text); }};
};

TEST_F(LauncherNoiseTest, NothingIsLeftOutBeforeARankHasFailed) {
  noise_.Take(kOpenMpi);
  noise_.Take("step 3\r");  // at once
  EXPECT_EQ(passed_, kOpenMpi + "step 3\r");
  noise_.Begin();
  noise_.End();
  EXPECT_THAT(left_out_, IsEmpty());
}

TEST_F(LauncherNoiseTest, HelpTextsAboutEndedRanksAreLeftOut) {
  noise_.Begin();
  noise_.Take("before\n");
  // In pieces.
  noise_.Take(kOpenMpi.substr(0, 100));
  noise_.Take(kOpenMpi.substr(100));
  noise_.Take("after\n");
  EXPECT_EQ(passed_, "before\nafter\n");
  EXPECT_EQ(left_out_, kOpenMpi);
  EXPECT_EQ(noise_.lines_left_out(), 4);
}

TEST_F(LauncherNoiseTest, AHostThatIsLostIsNoNoise) {
  const std::string lost =
      kRule +
      "ORTE has lost communication with a remote daemon.\n\n"
      "  HNP daemon   : [[1,0],0] on node n01\n"
      "  Remote daemon: [[1,0],1] on node n02\n" +
      kRule;
  noise_.Begin();
  noise_.Take(lost + "x\n");
  EXPECT_EQ(passed_, lost + "x\n");
  EXPECT_THAT(left_out_, IsEmpty());
}

TEST_F(LauncherNoiseTest, TracesAndNewsOfEndedTasksAreLeftOut) {
  const std::string noise =
      "[n01:04711] PMIX ERROR: UNREACHABLE in file server/x.c at line 2198\n"
      "[n01][[44488,1],1][btl_tcp_proc.c:266:mca_btl_tcp_proc_create] Unable "
      "to find reachable pairing between local and remote interfaces\n"
      "[n01:04711] *** Process received signal ***\n"
      "[n01:04711] Signal: Segmentation fault (11)\n"
      "[n01:04711] [ 0] /lib/libc.so.6(+0x3c050)[0x7f]\n"
      "[n01:04711] *** End of error message ***\n"
      "[n01:4711 :0:4711] Caught signal 11 (Segmentation fault: address x)\n"
      "==== backtrace (tid:   4711) ====\n"
      " 0 0x000000000003c050 __sigaction()  ???:0\n"
      "=================================\n"
      "==== backtrace (tid:   4712) ====\n"
      " 0  /lib/libucs.so.0(ucs_handle_error+0x2dc) [0x7fa54d6dde9c]\n"
      "10  ./program(+0x1312) [0x56013807b312]\n"
      "=================================\n"
      "Abort(75) on node 1 (rank 1 in comm 0): application called "
      "MPI_Abort(MPI_COMM_WORLD, 75) - process 1\n"
      "srun: error: n02: task 1: Exited with exit code 6\n"
      "slurmstepd: error: *** STEP 7.0 ON n01 CANCELLED AT 2026-11-25T02:31:54 "
      "***\n";
  noise_.Begin();
  noise_.Take(noise);
  EXPECT_EQ(left_out_, noise);
  EXPECT_THAT(passed_, IsEmpty());
}

TEST_F(LauncherNoiseTest, WhatRanksSayIsPassedOn) {
  const std::string said =
      "[2026-11-25 02:31:54.123 n01 rank 3 pid 4711 hvdlite warning] text\n"
      "[W Module.cpp:1] a warning of LibTorch\n"
      "[trainer.cc:88] *** Check failed: loss < 10 ***\n"
      "[main.py:57] [12] batches are lost\n"
      "[n01:04711] *** An error occurred in MPI_Allreduce\n"
      "[n01:04711] *** MPI_ERR_TRUNCATE: message truncated\n"
      "[1764037914.1] [n01:4711 :0]  ib.c:1 UCX  ERROR Transport retry count "
      "exceeded on mlx5_0:1\n"
      "terminate called after throwing an instance of 'c10::Error'\n"
      "slurmstepd: error: *** STEP 7.0 ON n01 CANCELLED AT 2026-11-25T02:31:54 "
      "DUE TO TIME LIMIT ***\n"
      "no end";
  noise_.Begin();
  noise_.Take(said);
  noise_.End();
  EXPECT_EQ(passed_, said);
  EXPECT_THAT(left_out_, IsEmpty());
}

TEST_F(LauncherNoiseTest, WhatOthersSayWithinABacktraceIsPassedOn) {
  noise_.Begin();
  noise_.Take(
      "==== backtrace (tid:   4711) ====\n"
      " 0 0x000000000003c050 __sigaction()  ???:0\n"
      "terminate called after throwing an instance of 'c10::Error'\n"
      " 1 0x00000000000260e8 main()  ???:0\n"
      "=================================\n"
      "after\n");
  EXPECT_EQ(passed_,
            "terminate called after throwing an instance of 'c10::Error'\n"
            "after\n");
  EXPECT_EQ(noise_.lines_left_out(), 4);
}

TEST_F(LauncherNoiseTest, WhatHasNoEndOfALineIsNotHeldForEver) {
  noise_.Begin();
  const std::string text(100'000, 'x');
  noise_.Take(text);
  EXPECT_EQ(passed_, text);
}

TEST_F(LauncherNoiseTest, ATableThatHasNoEndIsPassedOn) {
  noise_.Begin();
  noise_.Take(kRule + "a table of the program\n");
  EXPECT_THAT(passed_, IsEmpty());
  noise_.End();
  EXPECT_EQ(passed_, kRule + "a table of the program\n");
}

TEST_F(LauncherNoiseTest, LinesAreNotHeldForEver) {
  std::string text = kRule;
  for (int i = 0; i < 200; ++i) absl::StrAppend(&text, "line ", i, "\n");
  noise_.Begin();
  noise_.Take(text);
  EXPECT_EQ(passed_, text);
}

}  // namespace
}  // namespace hvdlite::launch
