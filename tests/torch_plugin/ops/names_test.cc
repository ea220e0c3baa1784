// Names of operations: in flight, automatic, reserved, and in messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/torch_plugin/error_text.h"
#include "tests/torch_plugin/rank_values.h"

namespace hvdlite {
namespace {

using ::testing::HasSubstr;

// Operations are asynchronous: if one rank is late, the operation stays in
// flight on the others, and the next one with its name is queued after it.
template <typename Submit, typename Again>
void ExpectNameIsUsedAgainInFlight(Submit submit, Again again) {
  for (const int late : {0, size() - 1}) {
    if (rank() == late) barrier();
    const auto work = submit();
    if (rank() == late) {
      again().wait();
    } else {
      EXPECT_FALSE(work.is_completed());
      const auto next = again();
      EXPECT_FALSE(next.is_completed());
      barrier();
      next.wait();
    }
    EXPECT_TRUE(work.is_completed());
    work.wait();
  }
}

template <typename Submit>
void ExpectNameIsUsedAgainInFlight(Submit submit) {
  ExpectNameIsUsedAgainInFlight(submit, submit);
}

TEST(NameTest, EveryOperationCanReuseANameInFlight) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  const at::Tensor tensor = at::ones({2 * size(), 3});
  const auto with = [](auto options) { return options.name("twice"); };
  ExpectNameIsUsedAgainInFlight(
      [&] { return allreduce_async(tensor, with(AllreduceOptions())); });
  ExpectNameIsUsedAgainInFlight([&] {
    return grouped_allreduce_async({tensor, tensor}, with(AllreduceOptions()));
  });
  ExpectNameIsUsedAgainInFlight(
      [&] { return allgather_async(tensor, with(AllgatherOptions())); });
  ExpectNameIsUsedAgainInFlight(
      [&] { return broadcast_async(tensor, 0, with(BroadcastOptions())); });
  ExpectNameIsUsedAgainInFlight(
      [&] { return alltoall_async(tensor, {}, with(AlltoallOptions())); });
  ExpectNameIsUsedAgainInFlight([&] {
    return reducescatter_async(tensor, with(ReducescatterOptions()));
  });
  // Different operations share their names.
  ExpectNameIsUsedAgainInFlight(
      [&] { return allreduce_async(tensor, with(AllreduceOptions())); },
      [&] { return allgather_async(tensor, with(AllgatherOptions())); });
}

TEST(NameTest, ReusedNameKeepsTheOrderOfSubmissions) {
  const auto options = With(ReduceOp::Sum).name("again");
  // Nothing completes before rank 0 has submitted.
  if (rank() == 0 && size() > 1) barrier();
  std::vector<Work> works;
  for (int k = 1; k <= 3; ++k) {
    works.push_back(allreduce_async(at::full({k}, k), options));
  }
  works.push_back(
      allgather_async(at::ones({1}), AllgatherOptions().name("again")));
  if (rank() != 0) barrier();
  EXPECT_EQ(works[3].wait().numel(), size());
  for (int k = 3; k >= 1; --k) {
    EXPECT_TRUE(works[k - 1].wait().equal(at::full({k}, k * size())));
  }
}

TEST(NameTest, ReservedNamesAreRejectedImmediately) {
  EXPECT_THAT(ErrorText([] {
                allreduce(at::ones({1}),
                          AllreduceOptions().name("a@process_set.1"));
              }),
              HasSubstr("reserved"));
}

// Returns the automatic name of the operation that fails with this text.
std::string AutomaticName(const std::string& text) {
  const size_t begin = text.find('\'') + 1;
  const std::string name = text.substr(begin, text.find('\'', begin) - begin);
  EXPECT_THAT(name, HasSubstr(".noname.")) << text;
  return name;
}

// Each kind uses the same number of names in turn. So every name becomes known
// to all ranks and is sent as an id.
TEST(NameTest, AutomaticNamesRepeat) {
  constexpr int kNames = 60;
  const at::Tensor none;
  const std::vector<std::function<void()>> operations = {
      [&] { allreduce(none); },
      [&] { allreduce_async(none).wait(); },
      [&] { grouped_allreduce({none}); },
      [&] { allgather(none); },
      [&] { grouped_allgather({none}); },
      [&] { broadcast_(none, 0); },
      [&] { alltoall(none); },
      [&] { reducescatter(none); },
      [&] { sparse_allreduce(none); },
      [&] { broadcast_object("", -1); }};
  for (const auto& operation : operations) {
    std::vector<std::string> names;
    for (int i = 0; i < 2 * kNames; ++i) {
      names.push_back(AutomaticName(ErrorText(operation)));
      if (i >= kNames) {
        EXPECT_EQ(names[i], names[i - kNames]);
      }
    }
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(),
              size_t{kNames});
  }
}

// Names depend only on the order of calls.
TEST(NameTest, AutomaticNamesDoNotDependOnWhenRanksWait) {
  constexpr int kCalls = 150;
  std::vector<Work> later;
  for (int i = 0; i < kCalls; ++i) {
    const at::Tensor mine = at::full({1}, i, at::kInt);
    switch ((rank() + i) % 4) {
      case 0:
        EXPECT_EQ(allreduce(mine, With(ReduceOp::Sum)).item<int>(), i * size());
        break;
      case 1:
        EXPECT_EQ(allreduce_async(mine, With(ReduceOp::Sum)).wait().item<int>(),
                  i * size());
        break;
      case 2:
        later.push_back(allreduce_async(mine, With(ReduceOp::Sum)));
        break;
      case 3:
        (void)allreduce_async(mine, With(ReduceOp::Sum));
        break;
    }
  }
  while (!later.empty()) {
    EXPECT_EQ(later.back().wait().item<int>() % size(), 0);
    later.pop_back();
  }
}

TEST(NameTest, MessagesContainNames) {
  EXPECT_THAT(ErrorText([] {
                allgather(at::Tensor(), AllgatherOptions().name("my_rows"));
              }),
              HasSubstr("'my_rows'"));
  EXPECT_THAT(ErrorText([] { broadcast(at::Tensor(), 0); }),
              HasSubstr("'broadcast.noname."));
}

}  // namespace
}  // namespace hvdlite
