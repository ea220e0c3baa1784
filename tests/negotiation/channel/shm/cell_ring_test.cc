#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "negotiation/channel/shm/shm_link.h"

namespace hvdlite::negotiation {
namespace {

class CellRingTest : public ::testing::Test {
 protected:
  static constexpr size_t kCells = 4;
  struct alignas(256) Memory {
    std::byte bytes[CellRing::Bytes(kCells)] = {};
  };

  CellRing ring() { return CellRing(absl::MakeSpan(memory_.bytes)); }

  Memory memory_;
  CellWriter writer_{ring()};
  CellReader reader_{ring()};
};

std::string Pattern(size_t bytes, size_t seed) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) {
    text.push_back(static_cast<char>(i * 7 + seed));
  }
  return text;
}

TEST_F(CellRingTest, MessagesOfAllSizesArriveThroughASmallRing) {
  // Some sizes in the middle fill cells exactly.
  for (size_t size = 0; size <= 6 * CellRing::kPayloadBytes; ++size) {
    const std::string message = Pattern(size, size);
    std::string arrived;
    size_t offset = 0;
    bool written = false;
    bool read = false;
    while (!read) {
      if (!written) written = writer_.Write(message, offset);
      read = reader_.Read(arrived);
      ASSERT_EQ(read, written) << "size: " << size << " bytes";
    }
    ASSERT_EQ(arrived, message);
    ASSERT_FALSE(reader_.HasCells());
  }
}

TEST_F(CellRingTest, ShortMessagesQueueUpToTheNumberOfCells) {
  for (size_t i = 0; i < kCells; ++i) {
    EXPECT_TRUE(writer_.HasRoom());
    size_t offset = 0;
    EXPECT_TRUE(
        writer_.Write(std::string(1, static_cast<char>('a' + i)), offset));
  }
  EXPECT_FALSE(writer_.HasRoom());
  size_t offset = 0;
  EXPECT_FALSE(writer_.Write("", offset));
  for (size_t i = 0; i < kCells; ++i) {
    EXPECT_TRUE(reader_.HasCells());
    std::string arrived;
    ASSERT_TRUE(reader_.Read(arrived));
    EXPECT_EQ(arrived, std::string(1, static_cast<char>('a' + i)));
  }
  EXPECT_FALSE(reader_.HasCells());
  EXPECT_TRUE(writer_.Write("", offset));
  std::string arrived;
  EXPECT_TRUE(reader_.Read(arrived));
  EXPECT_EQ(arrived, "");
}

TEST_F(CellRingTest, WriterThatAwaitsRoomIsInformedOnce) {
  size_t offset = 0;
  EXPECT_FALSE(writer_.Write(std::string(1000, 'x'), offset));
  EXPECT_EQ(offset, kCells * CellRing::kPayloadBytes);
  writer_.AwaitRoom();
  EXPECT_FALSE(reader_.TakeRoomAwaited());
  std::string arrived;
  EXPECT_FALSE(reader_.Read(arrived));
  EXPECT_EQ(arrived.size(), offset);
  EXPECT_TRUE(reader_.TakeRoomAwaited());
  EXPECT_FALSE(reader_.TakeRoomAwaited());
  EXPECT_TRUE(writer_.HasRoom());
}

TEST_F(CellRingTest, WriterThatDoesNotAwaitRoomIsNotInformed) {
  size_t offset = 0;
  EXPECT_FALSE(writer_.Write(std::string(1000, 'x'), offset));
  std::string arrived;
  EXPECT_FALSE(reader_.Read(arrived));
  EXPECT_FALSE(reader_.TakeRoomAwaited());
}

TEST_F(CellRingTest, ThreadsPassMessagesOfManySizes) {
  constexpr size_t kMessages = 20'000;
  const auto size_of = [](size_t number) { return number * 37 % 700; };
  std::thread sender([&] {
    for (size_t number = 0; number < kMessages; ++number) {
      const std::string message = Pattern(size_of(number), number);
      size_t offset = 0;
      while (!writer_.Write(message, offset)) std::this_thread::yield();
    }
  });
  for (size_t number = 0; number < kMessages; ++number) {
    std::string arrived;
    while (!reader_.Read(arrived)) std::this_thread::yield();
    ASSERT_TRUE(arrived == Pattern(size_of(number), number)) << number;
  }
  sender.join();
}

}  // namespace
}  // namespace hvdlite::negotiation
