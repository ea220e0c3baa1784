// The requirements for every ControlChannel. All ranks of a world run each
// check, each with its own channel. The channel reaches all other ranks; if it
// connects only neighbours, all ranks are neighbours. kControlChannelChecks
// lists the checks.
#pragma once

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "negotiation/channel/control_channel.h"
#include "tests/testing/unless_sanitized.h"

namespace hvdlite::testing {

// Sleeps as the channel requires, after TryReceive has returned nothing. False
// if a message came before the sleep.
inline bool SleepOn(negotiation::ControlChannel& channel) {
  if (!channel.PrepareToSleep()) return false;
  std::vector<pollfd> watched;
  for (const int descriptor : channel.wake_descriptors()) {
    watched.push_back({descriptor, POLLIN, 0});
  }
  if (watched.empty()) {
    sched_yield();
  } else {
    poll(watched.data(), watched.size(), -1);
  }
  return true;
}

// Returns the next message. Looks `looks` more times, and then waits as the
// channel requires.
inline negotiation::ControlMessage Receive(negotiation::ControlChannel& channel,
                                           int looks = 0) {
  for (;;) {
    auto received = channel.TryReceive();
    if (!received.ok()) {
      ADD_FAILURE() << received.status();
      return {};
    }
    if (received->has_value()) return **std::move(received);
    if (looks-- > 0) {
      sched_yield();
    } else {
      SleepOn(channel);
    }
  }
}

// Sizes from empty to far beyond what a transport sends eagerly.
inline std::string NumberedMessage(int from, int number) {
  constexpr size_t kSizes[] = {0, 1, 30, 5000, 300'000};
  return absl::StrCat(from, " ", number, " ") +
         std::string(kSizes[number % 5], static_cast<char>('a' + number % 26));
}

inline constexpr int kRoundsOfSizes = UnlessSanitized(10, 3);

// All ranks send `count` messages to all ranks before any rank receives one.
// Messages of one sender arrive complete and in order.
inline void ExchangeAll(
    negotiation::ControlChannel& channel, int count,
    const std::function<std::string(int from, int number)>& message_of) {
  for (int number = 0; number < count; ++number) {
    const std::string message = message_of(channel.rank(), number);
    for (int to = 0; to < channel.size(); ++to) {
      if (to == channel.rank()) continue;
      ASSERT_TRUE(channel.Send(to, message).ok());
    }
  }
  std::map<int, int> next;
  for (int i = 0; i < count * (channel.size() - 1); ++i) {
    const negotiation::ControlMessage message = Receive(channel);
    // ASSERT_EQ would print megabytes.
    ASSERT_TRUE(message.bytes == message_of(message.from, next[message.from]))
        << "rank " << channel.rank() << ": message " << next[message.from]
        << " of rank " << message.from << " is " << message.bytes.size()
        << " bytes: " << message.bytes.substr(0, 20);
    ++next[message.from];
  }
  EXPECT_TRUE(channel.Flush(absl::Seconds(60)).ok());
}

inline void CheckMessagesArriveInOrder(negotiation::ControlChannel& channel) {
  ExchangeAll(channel, 5 * kRoundsOfSizes, NumberedMessage);
}

// Small messages must not overtake large ones that were sent before. Send must
// return even if the transport is full, since no rank receives meanwhile.
// kLargeBytes is the size of the large messages of all ranks together.
inline constexpr size_t kLargeBytes = UnlessSanitized(16'000'000, 1'600'000);

inline void CheckLargeMessagesNeedNoReceiver(
    negotiation::ControlChannel& channel) {
  const size_t large_bytes = kLargeBytes / channel.size();
  ExchangeAll(channel, 6, [&](int from, int number) {
    std::string bytes = absl::StrCat(from, " ", number, " ");
    if (number % 3 == 0) {
      const size_t begin = bytes.size();
      bytes.resize(large_bytes);
      char* const data = bytes.data();
      for (size_t i = begin; i < large_bytes; ++i) {
        data[i] = static_cast<char>(i * 31 + i / 4099 + number);
      }
    }
    return bytes;
  });
}

inline void CheckManySmallMessagesFromAllRanksAtOnce(
    negotiation::ControlChannel& channel) {
  ExchangeAll(channel, UnlessSanitized(3000, 600), [](int from, int number) {
    return absl::StrCat(from, " ", number) + std::string(number % 40, '.');
  });
}

// A message is passed around the ring of ranks many times.
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

// Ranks look several times for a message, and then sleep, sometimes just when
// it arrives. A lost wake-up leaves them asleep for ever.
inline void CheckNoMessageIsLostBetweenLookingAndSleeping(
    negotiation::ControlChannel& channel) {
  constexpr int kRounds = UnlessSanitized(1000, 250);
  const int partner = channel.rank() ^ 1;
  if (partner >= channel.size()) return;
  for (int round = 0; round < kRounds; ++round) {
    if (channel.rank() < partner) {
      ASSERT_TRUE(channel.Send(partner, absl::StrCat(round)).ok());
    }
    ASSERT_EQ(Receive(channel, round * 7 % 20).bytes, absl::StrCat(round));
    if (channel.rank() > partner) {
      ASSERT_TRUE(channel.Send(partner, absl::StrCat(round)).ok());
    }
  }
  EXPECT_TRUE(channel.Flush(absl::Seconds(60)).ok());
}

// A rank that has received nothing sends, and then sleeps. The answer wakes it.
inline void CheckSenderMaySleepAtOnce(negotiation::ControlChannel& channel) {
  constexpr int kRounds = 200;
  const int partner = channel.rank() ^ 1;
  if (partner >= channel.size()) return;
  for (int round = 0; round < kRounds; ++round) {
    // Some messages are so large that both sides must act more than once.
    const std::string text(round % 10 == 0 ? 300'000 : 10, 'x');
    if (channel.rank() < partner) {
      const auto nothing = channel.TryReceive();
      ASSERT_TRUE(nothing.ok() && !nothing->has_value());
      ASSERT_TRUE(channel.Send(partner, text).ok());
      SleepOn(channel);
      ASSERT_TRUE(Receive(channel).bytes == text);
    } else {
      ASSERT_TRUE(Receive(channel).bytes == text);
      ASSERT_TRUE(channel.Send(partner, text).ok());
    }
  }
  EXPECT_TRUE(channel.Flush(absl::Seconds(60)).ok());
}

// `barrier` blocks until all ranks have called it, without the channel.
using Barrier = std::function<void()>;

// After Flush, a message arrives although its sender does nothing more.
inline void CheckFlushedMessagesNeedTheirSenderNoMore(
    negotiation::ControlChannel& channel, const Barrier& barrier) {
  for (int sender = 0; sender < channel.size(); ++sender) {
    if (channel.rank() == sender) {
      for (int to = 0; to < channel.size(); ++to) {
        if (to == sender) continue;
        ASSERT_TRUE(channel.Send(to, "small").ok());
        ASSERT_TRUE(channel.Send(to, std::string(300'000, 'x')).ok());
      }
      ASSERT_TRUE(channel.Flush(absl::Seconds(60)).ok());
    } else {
      ASSERT_EQ(Receive(channel).bytes, "small");
      ASSERT_EQ(Receive(channel).bytes.size(), 300'000);
    }
    barrier();
  }
}

// Delivered messages arrive although their sender does nothing more; in the end
// all messages are delivered.
inline void CheckDeliveredMessagesNeedTheirSenderNoMore(
    negotiation::ControlChannel& channel, const Barrier& barrier) {
  uint64_t sent = channel.delivered();
  for (int sender = 0; sender < channel.size(); ++sender) {
    if (channel.rank() == sender) {
      for (const size_t bytes : {size_t{10}, size_t{300'000}, size_t{10}}) {
        for (int to = 0; to < channel.size(); ++to) {
          if (to == sender) continue;
          ASSERT_TRUE(channel.Send(to, std::string(bytes, 'x')).ok());
          ASSERT_LE(channel.delivered(), ++sent);
        }
      }
      while (channel.delivered() < sent) {
        const auto nothing = channel.TryReceive();
        ASSERT_TRUE(nothing.ok() && !nothing->has_value());
        sched_yield();
      }
      EXPECT_EQ(channel.delivered(), sent);
    } else {
      ASSERT_EQ(Receive(channel).bytes.size(), 10);
      ASSERT_EQ(Receive(channel).bytes.size(), 300'000);
      ASSERT_EQ(Receive(channel).bytes.size(), 10);
    }
    barrier();
  }
}

// Descriptors become readable when a message arrives, and quiet once it has
// been received. Otherwise a sleeper would be woken for nothing, for ever.
inline void CheckDescriptorsTellOfMessages(negotiation::ControlChannel& channel,
                                           const Barrier& barrier) {
  constexpr int kMostWakeUpsForNothing = 1000;
  if (channel.wake_descriptors().empty()) return;
  const auto readable = [&] {
    for (const int descriptor : channel.wake_descriptors()) {
      pollfd watched = {descriptor, POLLIN, 0};
      if (poll(&watched, 1, 0) > 0) return true;
    }
    return false;
  };
  const auto expect_quiet = [&] {
    int wake_ups = 0;
    do {
      const auto nothing = channel.TryReceive();
      ASSERT_TRUE(nothing.ok() && !nothing->has_value());
    } while ((!channel.PrepareToSleep() || readable()) &&
             ++wake_ups < kMostWakeUpsForNothing);
    EXPECT_LT(wake_ups, kMostWakeUpsForNothing);
  };
  for (int round = 0; round < 10; ++round) {
    barrier();
    expect_quiet();
    barrier();
    if (channel.rank() == 0) {
      for (int to = 1; to < channel.size(); ++to) {
        ASSERT_TRUE(channel.Send(to, "wake up").ok());
      }
      ASSERT_TRUE(channel.Flush(absl::Seconds(60)).ok());
    } else {
      do {
        EXPECT_TRUE(!SleepOn(channel) || readable());
        const auto received = channel.TryReceive();
        ASSERT_TRUE(received.ok());
        if (received->has_value()) break;
      } while (true);
    }
  }
  barrier();
}

// Looking repeatedly is harmless, and messages arrive.
inline void CheckLookingOftenIsHarmless(negotiation::ControlChannel& channel,
                                        const Barrier& barrier) {
  for (int look = 0; look < 10'000; ++look) {
    const auto nothing = channel.TryReceive();
    ASSERT_TRUE(nothing.ok() && !nothing->has_value());
  }
  barrier();
  CheckRing(channel);
}

// All checks above, with names that follow "MpiChannel". Every rank calls
// `run`.
struct ControlChannelCheck {
  const char* name;
  void (*run)(negotiation::ControlChannel&, const Barrier&);
};

template <void (*check)(negotiation::ControlChannel&)>
void WithoutBarrier(negotiation::ControlChannel& channel, const Barrier&) {
  check(channel);
}

inline constexpr ControlChannelCheck kControlChannelChecks[] = {
    {"MessagesArriveInOrder", WithoutBarrier<CheckMessagesArriveInOrder>},
    {"LargeMessagesNeedNoReceiver",
     WithoutBarrier<CheckLargeMessagesNeedNoReceiver>},
    {"ManySmallMessagesArriveFromAllRanksAtOnce",
     WithoutBarrier<CheckManySmallMessagesFromAllRanksAtOnce>},
    {"RingKeepsTurning", WithoutBarrier<CheckRing>},
    {"NoMessageIsLostBetweenLookingAndSleeping",
     WithoutBarrier<CheckNoMessageIsLostBetweenLookingAndSleeping>},
    {"SenderMaySleepAtOnce", WithoutBarrier<CheckSenderMaySleepAtOnce>},
    {"FlushedMessagesNeedTheirSenderNoMore",
     CheckFlushedMessagesNeedTheirSenderNoMore},
    {"DeliveredMessagesNeedTheirSenderNoMore",
     CheckDeliveredMessagesNeedTheirSenderNoMore},
    {"DescriptorsTellOfMessages", CheckDescriptorsTellOfMessages},
    {"LookingOftenIsHarmless", CheckLookingOftenIsHarmless},
};

inline void PrintTo(const ControlChannelCheck& check, std::ostream* out) {
  *out << check.name;
}

}  // namespace hvdlite::testing
