// What every ControlChannel must do. Each check is run by all ranks of a world,
// each with its own channel.
#pragma once

#include <poll.h>
#include <sched.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "negotiation/control_channel.h"

namespace hvdlite::testing {

// The next message; waits for it the way the channel says.
inline negotiation::ControlMessage Receive(
    negotiation::ControlChannel& channel) {
  for (;;) {
    auto received = channel.TryReceive();
    if (!received.ok()) {
      ADD_FAILURE() << received.status();
      return {};
    }
    if (received->has_value()) return **std::move(received);
    std::vector<pollfd> watched;
    for (const int descriptor : channel.wake_descriptors()) {
      watched.push_back({descriptor, POLLIN, 0});
    }
    if (watched.empty()) {
      sched_yield();
    } else {
      poll(watched.data(), watched.size(), -1);
    }
  }
}

// Sizes from empty to far beyond what a transport sends eagerly.
inline std::string NumberedMessage(int from, int number) {
  constexpr size_t kSizes[] = {0, 1, 30, 5000, 300'000};
  return absl::StrCat(from, " ", number, " ") +
         std::string(kSizes[number % 5], static_cast<char>('a' + number % 26));
}

// Everybody sends to everybody at once; messages of one sender arrive in order
// and whole.
inline void CheckMessagesArriveInOrder(negotiation::ControlChannel& channel) {
  constexpr int kMessages = 50;
  for (int number = 0; number < kMessages; ++number) {
    for (int to = 0; to < channel.size(); ++to) {
      if (to == channel.rank()) continue;
      ASSERT_TRUE(
          channel.Send(to, NumberedMessage(channel.rank(), number)).ok());
    }
  }
  std::map<int, int> next;
  for (int i = 0; i < kMessages * (channel.size() - 1); ++i) {
    const negotiation::ControlMessage message = Receive(channel);
    ASSERT_EQ(message.bytes,
              NumberedMessage(message.from, next[message.from]++));
  }
  EXPECT_TRUE(channel.Flush(absl::Seconds(60)).ok());
}

// A message goes round the ring of ranks many times.
inline void CheckRing(negotiation::ControlChannel& channel) {
  if (channel.size() == 1) return;
  constexpr int kRounds = 100;
  const int next = (channel.rank() + 1) % channel.size();
  const int previous = (channel.rank() + channel.size() - 1) % channel.size();
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = absl::StrCat("round ", round);
    if (channel.rank() == 0) {
      ASSERT_TRUE(channel.Send(next, text).ok());
    }
    const negotiation::ControlMessage message = Receive(channel);
    ASSERT_EQ(message.from, previous);
    ASSERT_EQ(message.bytes, text);
    if (channel.rank() != 0) {
      ASSERT_TRUE(channel.Send(next, text).ok());
    }
  }
  EXPECT_TRUE(channel.Flush(absl::Seconds(60)).ok());
}

}  // namespace hvdlite::testing
