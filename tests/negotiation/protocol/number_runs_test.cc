#include <numeric>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<uint32_t> ReadIds(const NumberField& field, bool* whole) {
  std::vector<uint32_t> ids;
  *whole = VisitIds(field, [&](uint32_t id) {
    ids.push_back(id);
    return true;
  });
  return ids;
}

NumberField FieldOf(const std::vector<uint64_t>& numbers) {
  NumberField field;
  for (const uint64_t number : numbers) field.Add(number);
  return field;
}

TEST(NumberRunsTest, IdsComeBackInTheirOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> ids;
    for (uint32_t runs = random() % 8; runs > 0; --runs) {
      const uint32_t first =
          random() % 3 == 0 ? 0xffffffff - random() % 4 : random() % 50;
      for (uint64_t id = first, left = 1 + random() % 5;
           left > 0 && id <= 0xffffffff; ++id, --left) {
        ids.push_back(static_cast<uint32_t>(id));
      }
    }
    NumberField field;
    AppendIds(ids, &field);
    bool whole = false;
    EXPECT_EQ(ReadIds(field, &whole), ids);
    EXPECT_TRUE(whole);
  }
}

TEST(NumberRunsTest, AThousandIdsInTheirOrderAreTwoNumbers) {
  std::vector<uint32_t> ids(1000);
  std::iota(ids.begin(), ids.end(), 7);
  NumberField field;
  AppendIds(ids, &field);
  EXPECT_THAT(field, ElementsAre(7 * 4 + 1, 998));
}

TEST(NumberRunsTest, SingleIdsTakeOneNumberEach) {
  NumberField field;
  AppendIds({5, 3, 1}, &field);
  EXPECT_THAT(field, ElementsAre(5 * 4, 2 * (2 * 3 - 1), 2 * (2 * 3 - 1)));
}

TEST(NumberRunsTest, IdsThatAreNotWellFormedAreRefused) {
  constexpr uint64_t kHuge = ~uint64_t{0};
  for (const std::vector<uint64_t>& numbers :
       std::vector<std::vector<uint64_t>>{{1},          // length is missing
                                          {2},          // before 0
                                          {kHuge},      // far before 0
                                          {kHuge - 3},  // far behind the last
                                          {5, kHuge},   // too long a run
                                          {uint64_t{0xffffffff} << 2 | 1, 0}}) {
    bool whole = true;
    EXPECT_THAT(ReadIds(FieldOf(numbers), &whole), IsEmpty());
    EXPECT_FALSE(whole) << numbers.front();
  }
}

TEST(NumberRunsTest, VisitingStopsWhereItIsTold) {
  NumberField field;
  AppendIds({1, 2, 3, 9}, &field);
  int visits = 0;
  EXPECT_FALSE(VisitIds(field, [&](uint32_t id) {
    ++visits;
    return id != 2;
  }));
  EXPECT_EQ(visits, 2);
}

TEST(NumberRunsTest, ValuesComeBackAndEqualOnesAreTwoNumbers) {
  for (const std::vector<uint32_t>& values : std::vector<std::vector<uint32_t>>{
           {}, {0}, {4, 4, 4, 4}, {1, 2, 2, 0xffffffff, 1}}) {
    NumberField field;
    AppendValues(values, &field);
    ValueReader reader(field);
    std::vector<uint32_t> read;
    uint32_t value = 0;
    EXPECT_EQ(reader.done(), values.empty());
    while (reader.Next(&value)) read.push_back(value);
    EXPECT_EQ(read, values);
    EXPECT_TRUE(reader.done());
  }
  NumberField field;
  AppendValues(std::vector<uint32_t>(1000, 3), &field);
  EXPECT_THAT(field, ElementsAre(3, 1000));
}

}  // namespace
}  // namespace hvdlite::negotiation
