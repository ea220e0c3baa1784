#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>

#include "collective/shm/shared_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/worlds/forked_rank.h"

namespace hvdlite::collective {
namespace {

using hvdlite::testing::ForkedRank;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

ptrdiff_t OpenDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       {});
}

void ExpectRefused(const SharedMapping::Address& address,
                   const std::string& reason) {
  const auto mapping = SharedMapping::Attach(address);
  EXPECT_EQ(mapping.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(mapping.status().message()), HasSubstr(reason));
}

TEST(SharedMappingTest, MemoryIsWholePagesOfZeros) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const size_t bytes : {size_t{0}, size_t{1}, page, page + 1}) {
    const auto mapping = SharedMapping::Create(bytes);
    ASSERT_TRUE(mapping.ok()) << mapping.status();
    const auto memory = (*mapping)->bytes();
    EXPECT_EQ(memory.size(),
              std::max<size_t>(1, (bytes + page - 1) / page) * page);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % page, 0U);
    EXPECT_THAT(memory, Each(std::byte{0}));
    EXPECT_EQ((*mapping)->address().bytes, memory.size());
  }
}

TEST(SharedMappingTest, ThreadsOfAProcessSeeTheSameAddresses) {
  const auto mapping = SharedMapping::Create(100).value();
  const auto attached = SharedMapping::Attach(mapping->address());
  ASSERT_TRUE(attached.ok()) << attached.status();
  EXPECT_EQ((*attached)->bytes().data(), mapping->bytes().data());
}

TEST(SharedMappingTest, AnotherProcessSeesTheMemory) {
  const auto mapping = SharedMapping::Create(100).value();
  const SharedMapping::Address address = mapping->address();
  // The child's private memory is not visible here, so the child must attach.
  const std::byte* const here = mapping->bytes().data();
  ForkedRank child([&](Communicator&) {
    const auto attached = SharedMapping::Attach(address);
    ForkedRank::Require(attached.ok(), "the child attaches");
    ForkedRank::Require((*attached)->bytes().size() == address.bytes,
                        "the whole memory is mapped");
    ForkedRank::Require((*attached)->bytes().data() != here,
                        "the mapping is not the inherited one");
    (*attached)->bytes()[99] = std::byte{42};
  });
  EXPECT_TRUE(child.WaitForEnd());
  EXPECT_EQ(mapping->bytes()[99], std::byte{42});
}

TEST(SharedMappingTest, WrongAddressIsRefused) {
  const auto mapping = SharedMapping::Create(100).value();
  const SharedMapping::Address right = mapping->address();
  ForkedRank child([&](Communicator&) {
    const auto attach = [](const SharedMapping::Address& address) {
      return std::string(SharedMapping::Attach(address).status().message());
    };
    SharedMapping::Address other_memory = right;
    ++other_memory.nonce;
    ForkedRank::Require(attach(other_memory).find("is not the peer's memory") !=
                            std::string::npos,
                        "other memory is refused");
    SharedMapping::Address no_descriptor = right;
    no_descriptor.descriptor = 1'000'000;
    ForkedRank::Require(
        attach(no_descriptor).find("No such file") != std::string::npos,
        "a descriptor that is not open is refused");
  });
  EXPECT_TRUE(child.WaitForEnd());
  // The child exists until it is waited for, but its memory is freed.
  SharedMapping::Address of_the_dead = right;
  of_the_dead.pid = child.process();
  ExpectRefused(of_the_dead, "cannot open /proc/");
  SharedMapping::Address of_a_stranger = right;
  ++of_a_stranger.process;
  ++of_a_stranger.nonce;
  ExpectRefused(of_a_stranger, "is not the peer's memory");
}

TEST(SharedMappingTest, FreedMemoryIsRefused) {
  auto mapping = SharedMapping::Create(100).value();
  const SharedMapping::Address address = mapping->address();
  mapping.reset();
  ExpectRefused(address, "has freed its memory");
}

TEST(SharedMappingTest, MoreMemoryThanAvailableIsAnError) {
  const auto mapping = SharedMapping::Create(size_t{1} << 63);
  EXPECT_THAT(mapping.status().code(),
              AnyOf(absl::StatusCode::kResourceExhausted,
                    absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(mapping.status().message()),
              HasSubstr("9223372036854775808 bytes"));
}

TEST(SharedMappingTest, NoFileOrDescriptorRemains) {
  const ptrdiff_t before = OpenDescriptors();
  {
    const auto mapping = SharedMapping::Create(100).value();
    const SharedMapping::Address address = mapping->address();
    ForkedRank child(
        [&](Communicator&) { (void)SharedMapping::Attach(address); });
    EXPECT_TRUE(child.WaitForEnd());
    // The memory has no name, so a crash leaves nothing behind.
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      EXPECT_THAT(entry.path().string(), ::testing::Not(HasSubstr("hvdlite")));
    }
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace hvdlite::collective
