#include "negotiation/protocol/wire_format.h"

#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

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

TEST(NumberListsTest, IdsKeepTheirOrder) {
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

TEST(NumberListsTest, AThousandConsecutiveIdsAreTwoNumbers) {
  std::vector<uint32_t> ids(1000);
  std::iota(ids.begin(), ids.end(), 7);
  NumberField field;
  AppendIds(ids, &field);
  EXPECT_THAT(field, ElementsAre(7 * 4 + 1, 998));
}

TEST(NumberListsTest, SingleIdsTakeOneNumberEach) {
  NumberField field;
  AppendIds({5, 3, 1}, &field);
  EXPECT_THAT(field, ElementsAre(5 * 4, 2 * (2 * 3 - 1), 2 * (2 * 3 - 1)));
}

TEST(NumberListsTest, MalformedIdsAreRefused) {
  constexpr uint64_t kHuge = ~uint64_t{0};
  for (const std::vector<uint64_t>& numbers :
       std::vector<std::vector<uint64_t>>{{1},          // the length is missing
                                          {2},          // before 0
                                          {kHuge},      // far before 0
                                          {kHuge - 3},  // far after the last
                                          {5, kHuge},  // a run that is too long
                                          {uint64_t{0xffffffff} << 2 | 1, 0}}) {
    bool whole = true;
    EXPECT_THAT(ReadIds(FieldOf(numbers), &whole), IsEmpty());
    EXPECT_FALSE(whole) << numbers.front();
  }
}

TEST(NumberListsTest, VisitingStopsOnRequest) {
  NumberField field;
  AppendIds({1, 2, 3, 9}, &field);
  int visits = 0;
  EXPECT_FALSE(VisitIds(field, [&](uint32_t id) {
    ++visits;
    return id != 2;
  }));
  EXPECT_EQ(visits, 2);
}

TEST(NumberListsTest, ValuesAreReadBackAndEqualOnesAreTwoNumbers) {
  for (const std::vector<uint64_t>& values : std::vector<std::vector<uint64_t>>{
           {}, {0}, {4, 4, 4, 4}, {1, 2, 2, ~uint64_t{0}, 1}}) {
    NumberField field;
    AppendValues(values, &field);
    ValueReader reader(field);
    std::vector<uint64_t> read;
    uint64_t value = 0;
    EXPECT_EQ(reader.done(), values.empty());
    while (reader.Next(&value)) read.push_back(value);
    EXPECT_EQ(read, values);
    EXPECT_TRUE(reader.done());
  }
  NumberField field;
  AppendValues(std::vector<uint64_t>(1000, 3), &field);
  EXPECT_THAT(field, ElementsAre(3, 1000));
}

TEST(RequestTest, ShapesWhoseSizeOverflowsAreRefused) {
  constexpr int64_t kHuge = int64_t{1} << 61;
  const auto is_read = [](std::vector<int64_t> shape) {
    Request request;
    request.tensors = {{.shape = std::move(shape)}};
    wire::Request message;
    ToWire(request, &message);
    return FromWire(message).ok();
  };
  EXPECT_TRUE(is_read({kHuge >> 3, 2}));
  EXPECT_TRUE(is_read({kAnyLength, kHuge >> 3, 2}));
  EXPECT_FALSE(is_read({kHuge, 2}));
  EXPECT_FALSE(is_read({2, -2}));
  // The rows are too large, although there are none.
  EXPECT_FALSE(is_read({0, kHuge, 2}));
}

TEST(RequestTest, OnlyKnownDataTypesAreRead) {
  const auto read = [](int dtype, collective::ReduceOp op) {
    Request request;
    request.tensors = {{.dtype = static_cast<collective::DataType>(dtype)}};
    request.op = op;
    wire::Request message;
    ToWire(request, &message);
    message.mutable_tensors(0)->set_dtype(static_cast<uint32_t>(dtype));
    const absl::StatusOr<Request> again = FromWire(message);
    return again.ok() && *again == request;
  };
  for (int dtype = 0; dtype < collective::kNumDataTypes; ++dtype) {
    EXPECT_TRUE(read(dtype, collective::ReduceOp::kSum)) << dtype;
    EXPECT_EQ(read(dtype, collective::ReduceOp::kMin),
              HasOp(static_cast<collective::DataType>(dtype),
                    collective::ReduceOp::kMin))
        << dtype;
  }
  for (const int dtype : {collective::kNumDataTypes, 255, 256, 1 << 30}) {
    EXPECT_FALSE(read(dtype, collective::ReduceOp::kSum)) << dtype;
  }
}

constexpr int64_t kMillisecond = 1'000'000;

// A slot of an operation that all ranks have submitted by its id.
struct ById {
  ById(uint32_t id, int64_t bytes) {
    registration.id = id;
    registration.request_bytes = bytes;
    slot.registered = &registration;
    slot.present = true;
  }
  ById(const ById&) = delete;
  ById& operator=(const ById&) = delete;

  Registration registration;
  TensorSlot slot;
};

std::vector<uint32_t> IdsOf(const NumberField& field) {
  std::vector<uint32_t> ids;
  EXPECT_TRUE(VisitIds(field, [&](uint32_t id) {
    ids.push_back(id);
    return true;
  }));
  return ids;
}

std::vector<ReadyById> Read(const wire::Ready& message, int64_t now_ns) {
  std::vector<ReadyById> read;
  EXPECT_TRUE(VisitReady(message, now_ns, [&](const ReadyById& ready) {
    read.push_back(ready);
    return true;
  }));
  return read;
}

TEST(ReportDraftTest, IdsAreHeldBackUntilTheyAreWorthAReport) {
  ReportDraft draft(100);
  draft.AddReady(ById(4, 60).slot, 0);
  EXPECT_FALSE(draft.IsDue());
  EXPECT_EQ(draft.coalesced_bytes(), 60);
  ById absent(9, 40);
  absent.slot.present = false;
  draft.AddReady(absent.slot, 0);
  EXPECT_TRUE(draft.IsDue());
  const wire::Report report = draft.Take(0);
  EXPECT_THAT(IdsOf(report.ready().ids()), ElementsAre(4));
  EXPECT_THAT(IdsOf(report.absent().ids()), ElementsAre(9));
  EXPECT_FALSE(draft.IsDue());
  EXPECT_EQ(draft.coalesced_bytes(), 0);
  EXPECT_EQ(draft.Take(0).ByteSizeLong(), 0);
}

TEST(ReportDraftTest, AwaitedTensorsAreNotHeldBack) {
  ReportDraft draft(100);
  ById by_id(4, 1);
  TensorSlot& slot = by_id.slot;
  draft.AddReady(slot, 0);
  EXPECT_FALSE(draft.IsDue());
  draft.AddUrgent(slot);
  EXPECT_TRUE(draft.IsDue());
  const wire::Report report = draft.Take(0);
  EXPECT_THAT(IdsOf(report.ready().ids()), ElementsAre(4));
  EXPECT_THAT(IdsOf(report.urgent_ids()), ElementsAre(4));

  slot.urgent = true;
  draft.AddReady(slot, 0);
  EXPECT_TRUE(draft.IsDue());
}

TEST(ReportDraftTest, ReleasedIdsAreSentWithTheNextReport) {
  ReportDraft draft(100);
  draft.AddReleased(7);
  EXPECT_FALSE(draft.IsDue());
  draft.rest().set_forgotten(3);
  EXPECT_TRUE(draft.IsDue());
  const wire::Report report = draft.Take(0);
  EXPECT_THAT(IdsOf(report.released_ids()), ElementsAre(7));
  EXPECT_EQ(report.forgotten(), 3);
  EXPECT_EQ(draft.Take(0).ByteSizeLong(), 0);
}

TEST(ReportDraftTest, TensorsWithoutIdAndTheRestAreSentImmediately) {
  ReportDraft draft(100);
  TensorSlot slot;
  slot.name = "x";
  slot.present = true;
  slot.urgent = true;
  Request request;
  request.name = "x";
  slot.variants.push_back({request, RankRuns({1, 2}), 0});
  draft.AddReady(slot, 0);
  EXPECT_TRUE(draft.IsDue());
  wire::Report report = draft.Take(0);
  ASSERT_EQ(report.announced_size(), 1);
  // All ranks below agree, and the parent knows which ones these are.
  EXPECT_FALSE(report.announced(0).has_ranks());
  EXPECT_THAT(report.urgent_names(), ElementsAre("x"));

  draft.rest().add_joined(3);
  EXPECT_TRUE(draft.IsDue());
  EXPECT_THAT(draft.Take(0).joined(), ElementsAre(3));
}

TEST(ReportDraftTest, AgesAreComputedWhenTheReportIsSent) {
  ReportDraft draft(100);
  ById by_id(4, 1);
  TensorSlot& slot = by_id.slot;
  slot.last_ns = 2 * kMillisecond;
  slot.last_rank = 7;
  draft.AddReady(slot, 3 * kMillisecond);
  const std::vector<ReadyById> read =
      Read(draft.Take(12 * kMillisecond).ready(), 12 * kMillisecond);
  ASSERT_EQ(read.size(), 1);
  EXPECT_EQ(read[0].id, 4);
  EXPECT_EQ(read[0].last_ns, slot.last_ns);
  EXPECT_EQ(read[0].last_rank, 7);
}

TEST(ReportDraftTest, AgesStayWithinTheirRange) {
  ReportDraft draft(100);
  ById by_id(4, 1);
  by_id.slot.last_ns = 5 * kMillisecond;
  draft.AddReady(by_id.slot, 0);
  wire::Ready ready = draft.Take(0).ready();  // the clock went back
  EXPECT_EQ(Read(ready, 0).at(0).last_ns, 0);
  // This is a damaged message.
  ready.mutable_ages()->Set(0, ~uint64_t{0});
  EXPECT_LT(Read(ready, 0).at(0).last_ns, -kMillisecond);
}

TEST(ReportDraftTest, EachIdHasItsValues) {
  ReportDraft draft(100);
  ById by_id(4, 1);
  draft.AddReady(by_id.slot, 0);
  const wire::Ready whole = draft.Take(0).ready();
  const auto visit = [](const ReadyById&) { return true; };
  EXPECT_TRUE(VisitReady(whole, 0, visit));
  wire::Ready damaged = whole;
  damaged.clear_last_ranks();
  EXPECT_FALSE(VisitReady(damaged, 0, visit));
  damaged = whole;
  AppendValues({3}, damaged.mutable_ages());  // without an id
  EXPECT_FALSE(VisitReady(damaged, 0, visit));
}

}  // namespace
}  // namespace hvdlite::negotiation
