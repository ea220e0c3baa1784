// The negotiation's messages as bytes, and the lists in them. Everything that
// can be read must be the same after it is written and read again.
#include <cstdint>
#include <string>
#include <vector>

#include "negotiation/protocol/wire_format.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using hvdlite::negotiation::FromWire;
using hvdlite::negotiation::NumberField;
using hvdlite::negotiation::RankRuns;
using hvdlite::negotiation::Request;
namespace negotiation = hvdlite::negotiation;
namespace wire = hvdlite::negotiation::wire;

constexpr size_t kMostIds = 100'000;
constexpr int kWorldSize = 1000;

void CheckIds(const NumberField& field) {
  std::vector<uint32_t> ids;
  const bool whole = negotiation::VisitIds(field, [&](uint32_t id) {
    ids.push_back(id);
    return ids.size() < kMostIds;
  });
  if (!whole) return;
  NumberField written;
  negotiation::AppendIds(ids, &written);
  std::vector<uint32_t> again;
  FUZZ_CHECK(negotiation::VisitIds(written, [&](uint32_t id) {
    again.push_back(id);
    return true;
  }));
  FUZZ_CHECK(again == ids);
}

void CheckValues(const NumberField& field) {
  negotiation::ValueReader reader(field);
  uint64_t value = 0;
  for (size_t left = kMostIds; left > 0 && reader.Next(&value); --left) {
  }
  reader.done();
}

void CheckRanks(const wire::Ranks& message) {
  const RankRuns ranks = FromWire(message, kWorldSize);
  wire::Ranks written;
  ToWire(ranks, &written);
  FUZZ_CHECK(FromWire(written, kWorldSize).size() == ranks.size());
  for (const int rank : ranks.Lowest(10)) {
    FUZZ_CHECK(rank >= 0 && rank < kWorldSize);
  }
  ranks.ToString();
}

void CheckRequest(const wire::Request& message,
                  std::vector<negotiation::Variant>* variants) {
  const absl::StatusOr<Request> request = FromWire(message);
  if (!request.ok()) {
    FUZZ_CHECK(!request.status().message().empty());
    return;
  }
  wire::Request written;
  ToWire(*request, &written);
  const absl::StatusOr<Request> again = FromWire(written);
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(written.SerializeAsString() != "" || request->name.empty());
  FUZZ_CHECK(request->size_bytes() >= 0);
  for (const negotiation::TensorSpec& tensor : request->tensors) {
    FUZZ_CHECK(negotiation::RowBytes(tensor) >= 0);
  }
  if (variants->size() < 8) {
    variants->push_back({*request,
                         RankRuns({static_cast<int>(variants->size())}),
                         static_cast<uint32_t>(variants->size() / 3)});
  }
}

void CheckReady(const wire::Ready& ready) {
  CheckIds(ready.ids());
  for (const NumberField* field :
       {&ready.last_ranks(), &ready.ages(), &ready.steps()}) {
    CheckValues(*field);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wire::Message message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  std::vector<negotiation::Variant> variants;
  CheckReady(message.report().ready());
  CheckReady(message.report().absent());
  CheckIds(message.report().urgent_ids());
  for (const wire::Announcement& announced : message.report().announced()) {
    CheckRequest(announced.request(), &variants);
    CheckRanks(announced.ranks());
  }
  for (const wire::StallAnswer& stall : message.report().answer().stalls()) {
    CheckRanks(stall.missing());
    CheckRanks(stall.silent());
  }
  for (const wire::Decision& decision : message.directive().decisions()) {
    const wire::Bucket& bucket = decision.bucket();
    CheckIds(bucket.ids());
    CheckIds(bucket.absent_ids());
    CheckValues(bucket.last_ranks());
    CheckValues(bucket.lateness_us());
    for (const wire::Registration& registered : bucket.registered()) {
      CheckRequest(registered.request(), &variants);
    }
  }
  if (!variants.empty() && !Agree(variants)) {
    FUZZ_CHECK(!negotiation::DescribeMismatch(variants).empty());
    negotiation::NextStep(variants);
  }
  return 0;
}
