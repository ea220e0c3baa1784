// Work, the timeline, and the world as operations see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/timeline.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/torch_plugin/rank_values.h"
#include "tests/torch_plugin/same_error.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(WorkTest, WaitThrowsEachTimeAndInEachCopy) {
  const Work work =
      allreduce_async(at::Tensor(), AllreduceOptions().name("again"));
  const Work copy = work;
  const std::string first = ErrorText([&] { work.wait(); });
  EXPECT_THAT(first, HasSubstr("again"));
  EXPECT_EQ(first, ErrorText([&] { copy.wait(); }));
  EXPECT_TRUE(work.is_completed());
  EXPECT_TRUE(work.wait_for(std::chrono::milliseconds(0)));
  const GroupWork group = grouped_allgather_async({at::Tensor()});
  EXPECT_EQ(ErrorText([&] { group.wait(); }), ErrorText([&] { group.wait(); }));
  const AlltoallWork alltoall = alltoall_async(at::Tensor());
  EXPECT_EQ(ErrorText([&] { alltoall.wait(); }),
            ErrorText([&] { alltoall.wait(); }));
}

TEST(WorkTest, ResultsOutliveTheWork) {
  at::Tensor gathered;
  {
    const Work work = allgather_async(at::full({2}, rank()));
    gathered = work.wait();
    EXPECT_TRUE(gathered.is_same(work.wait()));
  }
  EXPECT_EQ(gathered[-1].item<int>(), size() - 1);
}

TEST(WorkTest, DroppedOperationsStillRun) {
  const auto options = AllreduceOptions().op(ReduceOp::Sum);
  const at::Tensor tensor = at::ones({5});
  (void)allreduce_async_(tensor, options);
  // This is reduced together with the previous one.
  allreduce(at::ones({1}), options);
  EXPECT_TRUE(tensor.eq(size()).all().item<bool>());
}

// Returns the same path on all ranks.
std::string TracePath(const std::string& name) {
  return broadcast_object(::testing::TempDir() + "hvdlite_" + name + "_" +
                              std::to_string(getpid()) + ".json",
                          0);
}

std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(TimelineTest, RecordsEveryOperationFromStartToStopAndMerges) {
  const std::string path = TracePath("all");
  start_timeline(path);
  EXPECT_THAT(ErrorText([&] { start_timeline(path); }),
              HasSubstr("stop_timeline()"));
  const ProcessSet set = add_process_set({0});
  {
    const TraceSpan span("OWN_SPAN");
    allreduce(at::ones({3}), AllreduceOptions().name("traced"));
    allgather(at::ones({3}));
    alltoall(at::ones({size()}));
    reducescatter(at::ones({size()}));
    allreduce(at::ones({3}), AllreduceOptions().op(ReduceOp::Adasum));
  }
  if (set.included()) {
    allreduce(at::ones({3}),
              AllreduceOptions().name("in_a_set").process_set(set));
  }
  stop_timeline();
  stop_timeline();
  remove_process_set(set);
  if (rank() != 0) return;
  const std::string text = TextOf(path);
  for (const char* part :
       {"OWN_SPAN", "\"traced\"", "NEGOTIATE_ALLREDUCE", "NEGOTIATE_ALLGATHER",
        "NEGOTIATE_ALLTOALL", "NEGOTIATE_REDUCESCATTER", "NEGOTIATE_ADASUM",
        "in_a_set"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  std::remove(path.c_str());
}

TEST(TimelineTest, CanRecordAgainIntoTheSameOrAnotherFile) {
  const auto run = [](const std::string& name) {
    allreduce(at::ones({3}), AllreduceOptions().name(name));
  };
  const auto traced = [&](const std::string& path, int number) {
    start_timeline(path);
    run("tensor_" + std::to_string(number));
    stop_timeline();
    run("tensor_between");
    return TextOf(path);
  };
  const std::string first = TracePath("first");
  const std::string second = TracePath("second");
  const std::string texts[] = {traced(first, 0), traced(second, 1),
                               traced(first, 2)};
  if (rank() != 0) return;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(texts[i], AllOf(HasSubstr("tensor_" + std::to_string(i)),
                                Not(HasSubstr("tensor_between"))));
    for (const int other : {(i + 1) % 3, (i + 2) % 3}) {
      EXPECT_THAT(texts[i], Not(HasSubstr("tensor_" + std::to_string(other))));
    }
  }
  std::remove(first.c_str());
  std::remove(second.c_str());
}

TEST(TimelineTest, FileThatOneRankCannotWriteFailsOnAllRanks) {
  const std::string good = TracePath("ok");
  const bool bad = rank() == size() - 1;
  ExpectSameError(
      [&] { start_timeline(bad ? "/nonexistent/directory/trace.json" : good); },
      "/nonexistent/directory");
  start_timeline(good);
  stop_timeline();
  if (rank() == 0) std::remove(good.c_str());
}

TEST(TimelineTest, DifferentPathsFailOnAllRanks) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  const std::string good = TracePath("ok");
  const std::string last = std::to_string(size() - 1);
  const bool other = rank() == size() - 1;
  ExpectSameError(
      [&] { start_timeline(other ? good + ".other" : good); },
      "rank 0 has '" + good + "', rank " + last + " has '" + good + ".other'");
  start_timeline(good);  // the failed calls have not started a recording
  stop_timeline();
  // As with HVDLITE_TIMELINE, each rank may have its own directory.
  start_timeline(other ? "/" + good : good);
  stop_timeline();
  if (rank() == 0) std::remove(good.c_str());
  if (other) {
    std::remove((good + ".other.rank0000" + last).c_str());
  }
}

TEST(WorldTest, SecondInitIsRefused) {
  EXPECT_TRUE(is_initialized());
  EXPECT_THAT(ErrorText([] { init(); }), HasSubstr("called twice"));
}

}  // namespace
}  // namespace hvdlite
