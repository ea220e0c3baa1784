#include "tools/hvdliterun/rank/launcher_noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvdlite::launch {
namespace {

const std::string kRule = std::string(74, '-') + "\n";

const std::string kOpenMpi =
    kRule +
    "Primary job  terminated normally, but 1 process returned\n"
    "a non-zero exit code. Per user-direction, the job has been aborted.\n" +
    kRule;

class LauncherNoiseTest : public ::testing::Test {
 protected:
  // Filters `text` after a rank has failed.
  void Take(const std::string& text, bool ends = true) {
    noise_.Begin();
    // The text arrives in pieces.
    noise_.Take(text.substr(0, 100));
    noise_.Take(text.substr(std::min<size_t>(100, text.size())));
    if (ends) noise_.End();
  }

  std::string passed_;
  std::string left_out_;
  LauncherNoise noise_{
      [this](absl::string_view text) { absl::StrAppend(&passed_, text); },
      [this](absl::string_view text) { absl::StrAppend(&left_out_, text); }};
};

TEST_F(LauncherNoiseTest, NothingIsFilteredBeforeARankFails) {
  noise_.Take(kOpenMpi);
  noise_.Take("step 3\r");  // is passed on immediately
  EXPECT_EQ(passed_, kOpenMpi + "step 3\r");
  Take("");
  EXPECT_EQ(left_out_, "");
}

TEST_F(LauncherNoiseTest, HelpTextsAboutEndedRanksAreFiltered) {
  Take("before\n" + kOpenMpi + "after\n");
  EXPECT_EQ(passed_, "before\nafter\n");
  EXPECT_EQ(left_out_, kOpenMpi);
  EXPECT_EQ(noise_.lines_left_out(), 4);
}

TEST_F(LauncherNoiseTest, TracesAndMessagesAboutEndedTasksAreFiltered) {
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
  Take(noise);
  EXPECT_EQ(left_out_, noise);
  EXPECT_EQ(passed_, "");
}

TEST_F(LauncherNoiseTest, OutputOfRanksAndLostHostsArePassedOn) {
  const std::string said =
      kRule +
      "ORTE has lost communication with a remote daemon.\n\n"
      "  HNP daemon   : [[1,0],0] on node n01\n"
      "  Remote daemon: [[1,0],1] on node n02\n" +
      kRule +
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
  Take(said);
  EXPECT_EQ(passed_, said);
  EXPECT_EQ(left_out_, "");
}

TEST_F(LauncherNoiseTest, OutputOfOtherRanksWithinABacktraceIsPassedOn) {
  Take(
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

TEST_F(LauncherNoiseTest, NoLineIsHeldForever) {
  const std::string line(100'000, 'x');
  std::string lines = kRule;
  for (int i = 0; i < 200; ++i) absl::StrAppend(&lines, "line ", i, "\n");
  for (const std::string& text : {line, lines}) {
    Take(text, /*ends=*/false);
    EXPECT_EQ(std::exchange(passed_, ""), text);
  }
  // A table without an end.
  Take(kRule + "a table of the program\n", /*ends=*/false);
  EXPECT_EQ(passed_, "");
  noise_.End();
  EXPECT_EQ(passed_, kRule + "a table of the program\n");
}

}  // namespace
}  // namespace hvdlite::launch
