#include "tools/hvdliterun/launch/restart_policy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/golden.h"

namespace hvdlite::launch {
namespace {

using Decision = RestartPolicy::Decision;

const std::vector<Host> kHosts = {{"a", 2}, {"b", 2}, {"c", 2}};

class RestartPolicyTest : public ::testing::Test {
 protected:
  static RestartOptions Ranks(int min_ranks, int max_ranks) {
    return {.max_restarts = 3,
            .min_ranks = min_ranks,
            .max_ranks = max_ranks,
            .cool_down = absl::Seconds(100),
            .wait = absl::Seconds(60)};
  }

  // Expects that the next decision is a start, and returns it.
  Decision Start(RestartPolicy& policy,
                 const std::vector<Host>& known = kHosts) {
    const Decision next = policy.Next(known, now_);
    EXPECT_EQ(next.kind, Decision::kStart) << next.reason;
    return next;
  }
  // Expects an end with this exit code. The reason is a golden text.
  void End(RestartPolicy& policy, int exit_code) {
    const Decision next = policy.Next(kHosts, now_);
    EXPECT_EQ(next.kind, Decision::kEnd);
    EXPECT_EQ(next.exit_code, exit_code);
    testing::ExpectGolden(next.reason);
  }
  void Pass(absl::Duration duration) { now_ += duration; }

  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(RestartPolicyTest, FirstStartUsesAllHostsUpToMaxRanks) {
  RestartPolicy all(Ranks(2, 6));
  EXPECT_EQ(Start(all).ranks, 6);
  RestartPolicy policy(Ranks(2, 3));
  const Decision start = Start(policy);
  EXPECT_EQ(start.ranks, 3);
  EXPECT_EQ(start.hosts, kHosts);
}

TEST_F(RestartPolicyTest, SuccessBadInputAndUserStopEndTheJob) {
  for (const int exit_code : {0, 2, 74, 85, 143}) {
    RestartPolicy policy(Ranks(2, 6));
    policy.Ended({.exit_code = exit_code, .told_to_stop = exit_code == 143},
                 now_);
    End(policy, exit_code);
  }
}

TEST_F(RestartPolicyTest, FailuresAreCountedAndLastExitCodeIsReturned) {
  RestartPolicy policy(Ranks(2, 6));
  for (int i = 0; i < 3; ++i) {
    Start(policy);
    policy.Ended({.exit_code = 137}, now_);
  }
  Start(policy);
  policy.Ended({.exit_code = 9}, now_);
  End(policy, 9);
}

TEST_F(RestartPolicyTest, HostThatFailsTwiceInARowIsSetAside) {
  RestartPolicy policy(Ranks(2, 6));
  policy.Ended({.exit_code = 1, .failed_host = "b"}, now_);
  EXPECT_EQ(Start(policy).ranks, 6);
  policy.Ended({.exit_code = 1, .failed_host = "b"}, now_);
  const Decision start = Start(policy);
  EXPECT_EQ(start.ranks, 4);
  EXPECT_EQ(start.hosts, (std::vector<Host>{{"a", 2}, {"c", 2}}));
  Pass(absl::Seconds(101));
  EXPECT_EQ(Start(policy).ranks, 6);
}

TEST_F(RestartPolicyTest, FailuresOfDifferentHostsSetNoHostAside) {
  RestartPolicy policy(Ranks(2, 6));
  for (const char* host : {"a", "b", "a"}) {
    policy.Ended({.exit_code = 1, .failed_host = host}, now_);
    EXPECT_EQ(Start(policy).ranks, 6);
  }
}

TEST_F(RestartPolicyTest, FailingHostIsUsedIfOthersDoNotSuffice) {
  RestartPolicy policy(Ranks(6, 6));
  policy.Ended({.exit_code = 1, .failed_host = "b"}, now_);
  policy.Ended({.exit_code = 1, .failed_host = "b"}, now_);
  EXPECT_EQ(Start(policy).hosts, kHosts);
}

TEST_F(RestartPolicyTest, LostHostIsSetAsideAndAwaitedIfNeeded) {
  RestartPolicy elastic(Ranks(2, 6));
  elastic.Ended({.exit_code = 1, .lost_hosts = {"a"}}, now_);
  EXPECT_EQ(Start(elastic).ranks, 4);

  RestartOptions fixed = Ranks(6, 6);
  fixed.wait = absl::Seconds(200);
  RestartPolicy policy(fixed);
  policy.Ended({.exit_code = 5, .lost_hosts = {"a"}}, now_);
  const Decision wait = policy.Next(kHosts, now_);
  EXPECT_EQ(wait.kind, Decision::kWait);
  EXPECT_EQ(wait.until, now_ + absl::Seconds(100));
  testing::ExpectGolden(wait.reason);
  Pass(absl::Seconds(100));
  EXPECT_EQ(Start(policy).ranks, 6);
}

TEST_F(RestartPolicyTest, WaitingEndsAfterTheTimeLimit) {
  RestartPolicy policy(Ranks(6, 6));
  policy.Ended({.exit_code = 5, .lost_hosts = {"a", "b"}}, now_);
  EXPECT_EQ(policy.Next(kHosts, now_).until, now_ + absl::Seconds(60));
  Pass(absl::Seconds(60));
  End(policy, 5);
}

TEST_F(RestartPolicyTest, WaitingBeforeTheFirstStartEndsWithAFailure) {
  RestartPolicy policy(Ranks(2, 6));
  EXPECT_EQ(policy.Next({{"a", 1}}, now_).kind, Decision::kWait);
  Pass(absl::Seconds(60));
  const Decision end = policy.Next({{"a", 1}}, now_);
  EXPECT_EQ(end.kind, Decision::kEnd);
  EXPECT_EQ(end.exit_code, 1);
}

TEST_F(RestartPolicyTest, NewHostsAreRequestedOnlyForMoreRanks) {
  RestartPolicy policy(Ranks(2, 6));
  const std::vector<Host> two = {{"a", 2}, {"b", 2}};
  EXPECT_TRUE(policy.WantsOtherHosts(4, two, kHosts, now_));
  EXPECT_FALSE(policy.WantsOtherHosts(6, kHosts, kHosts, now_));
  EXPECT_FALSE(
      RestartPolicy(Ranks(2, 4)).WantsOtherHosts(4, two, kHosts, now_));
  // Hosts that are no longer listed are left early if enough others stay.
  EXPECT_TRUE(policy.WantsOtherHosts(6, kHosts, two, now_));
  EXPECT_FALSE(policy.WantsOtherHosts(4, two, {{"c", 1}}, now_));
}

TEST_F(RestartPolicyTest, StopForOtherHostsIsNoFailure) {
  RestartOptions none = Ranks(2, 6);
  none.max_restarts = 0;
  RestartPolicy policy(none);
  for (const int exit_code : {85, 143, 138}) {
    policy.Ended({.exit_code = exit_code, .asked_for_hosts = true}, now_);
    Start(policy);
  }
  EXPECT_EQ(policy.failures(), 0);
  policy.Ended({.exit_code = 1, .asked_for_hosts = true}, now_);
  End(policy, 1);
}

TEST_F(RestartPolicyTest, OversubscribedHostsGetAllRanks) {
  RestartOptions options = Ranks(6, 6);
  options.oversubscribe = true;
  RestartPolicy policy(options);
  policy.Ended({.exit_code = 1, .lost_hosts = {"a", "b"}}, now_);
  const Decision start = Start(policy);
  EXPECT_EQ(start.ranks, 6);
  EXPECT_EQ(start.hosts, (std::vector<Host>{{"c", 2}}));
}

}  // namespace
}  // namespace hvdlite::launch
