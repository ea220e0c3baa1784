#include <poll.h>

#include <atomic>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/channel/shm/shm_link.h"
#include "tests/testing/unless_sanitized.h"
#include "tests/testing/worlds/forked_rank.h"

namespace hvdlite::negotiation {
namespace {

using ::testing::HasSubstr;

bool Readable(const Doorbell& doorbell) {
  pollfd watched = {doorbell.descriptor(), POLLIN, 0};
  return poll(&watched, 1, 0) != 0;
}

class DoorbellTest : public ::testing::Test {
 protected:
  DoorbellPlace place_ = {};
  std::unique_ptr<Doorbell> doorbell_ = Doorbell::Create(place_).value();
  DoorbellButton button_ = DoorbellButton::Attach(place_).value();
};

TEST_F(DoorbellTest, RingsOnlyWhileItIsArmed) {
  button_.Press();
  EXPECT_FALSE(Readable(*doorbell_));
  EXPECT_EQ(doorbell_->Disarm(), Doorbell::State::kNotArmed);
  doorbell_->Arm();
  EXPECT_FALSE(Readable(*doorbell_));
  button_.Press();
  EXPECT_TRUE(Readable(*doorbell_));
  EXPECT_EQ(doorbell_->Disarm(), Doorbell::State::kRung);
  EXPECT_FALSE(Readable(*doorbell_));
  button_.Press();
  EXPECT_FALSE(Readable(*doorbell_));
}

TEST_F(DoorbellTest, ReportsThatItWasNotRung) {
  doorbell_->Arm();
  EXPECT_EQ(doorbell_->Disarm(), Doorbell::State::kNotRung);
  EXPECT_EQ(doorbell_->Disarm(), Doorbell::State::kNotArmed);
}

TEST_F(DoorbellTest, BecomesQuietAfterAnyNumberOfRings) {
  DoorbellButton other = DoorbellButton::Attach(place_).value();
  for (int i = 0; i < 5; ++i) {
    doorbell_->Arm();
    button_.Press();
    other.Press();
  }
  EXPECT_TRUE(Readable(*doorbell_));
  EXPECT_EQ(doorbell_->Disarm(), Doorbell::State::kRung);
  EXPECT_FALSE(Readable(*doorbell_));
}

TEST_F(DoorbellTest, PressingIsHarmlessWhenTheOwnerIsGone) {
  doorbell_->Arm();
  doorbell_.reset();
  button_.Press();  // this must not raise SIGPIPE
}

TEST_F(DoorbellTest, RingsFromAnotherProcess) {
  doorbell_->Arm();
  hvdlite::testing::ForkedRank presser([&](collective::Communicator&) {
    // The inherited doorbell must not be used.
    doorbell_.reset();
    DoorbellButton::Attach(place_).value().Press();
  });
  // The child has its own copy of the memory. So the doorbell rings, although
  // the place here still says that it is armed.
  EXPECT_TRUE(presser.WaitForEnd());
  EXPECT_TRUE(Readable(*doorbell_));
}

TEST_F(DoorbellTest, WrongPipeIsRefused) {
  DoorbellPlace wrong = {};
  wrong.process = place_.process;
  wrong.descriptor = place_.descriptor;
  wrong.inode = place_.inode + 1;
  const absl::Status status = DoorbellButton::Attach(wrong).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is not the peer's doorbell"));
  wrong.descriptor = 1'000'000;
  EXPECT_EQ(DoorbellButton::Attach(wrong).status().code(),
            absl::StatusCode::kUnavailable);
}

// Two threads sleep until the other one has moved on. There are no timeouts, so
// a lost wake-up stops them for ever.
TEST(DoorbellStressTest, NoWakeUpIsLost) {
  constexpr int kRounds = hvdlite::testing::UnlessSanitized(100'000, 10'000);
  struct Side {
    DoorbellPlace place = {};
    std::unique_ptr<Doorbell> doorbell = Doorbell::Create(place).value();
    std::atomic<int> announced{0};
  };
  Side sides[2];
  const auto run = [&](Side& own, Side& other, bool begins) {
    DoorbellButton button = DoorbellButton::Attach(other.place).value();
    for (int round = 1; round <= kRounds; ++round) {
      const int awaited = begins ? round - 1 : round;
      // Sometimes without a chance to sleep.
      for (int look = 0; look < round % 8; ++look) {
        if (other.announced.load() >= awaited) break;
      }
      while (other.announced.load() < awaited) {
        own.doorbell->Arm();
        if (other.announced.load() < awaited) {
          pollfd watched = {own.doorbell->descriptor(), POLLIN, 0};
          poll(&watched, 1, -1);
        }
        own.doorbell->Disarm();
      }
      own.announced.store(round);
      button.Press();
    }
  };
  std::thread second([&] { run(sides[1], sides[0], false); });
  run(sides[0], sides[1], true);
  second.join();
}

}  // namespace
}  // namespace hvdlite::negotiation
