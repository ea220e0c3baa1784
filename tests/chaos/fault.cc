#include "tests/chaos/fault.h"

#include <initializer_list>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hvdlite::testing {
namespace {

using Kind = Fault::Kind;
using Point = Fault::Point;

constexpr absl::string_view kKinds[] = {
    "dies",           "stops",        "pauses",           "slow",
    "link cut",       "link delayed", "data plane fails", "no memory",
    "callback throws"};
constexpr absl::string_view kPoints[] = {
    "at the start",
    "in the negotiation",
    "at a gate",
    "before a call of the data plane",
    "after a call of the data plane",
    "making a process set",
    "when an operation allocates its outputs",
    "in the shutdown"};

std::vector<Point> PointsOf(Kind kind) {
  switch (kind) {
    case Kind::kDies:
    case Kind::kStops:
    case Kind::kPauses:
      return {Point::kStart,   Point::kNegotiation, Point::kAtGate,
              Point::kPack,    Point::kUnpack,      Point::kSetMaking,
              Point::kShutdown};
    case Kind::kSlow:
      return {Point::kStart};
    case Kind::kCut:
    case Kind::kDelayed:
      return {Point::kStart, Point::kNegotiation, Point::kAtGate,
              Point::kShutdown};
    case Kind::kDataPlaneFails:
    case Kind::kNoMemory:
      return {Point::kPack, Point::kUnpack, Point::kSetMaking};
    case Kind::kCallbackThrows:
      return {Point::kAllocate};
  }
  return {};
}

}  // namespace

absl::string_view NameOf(Kind kind) { return kKinds[static_cast<int>(kind)]; }

std::string Describe(const Fault& fault) {
  std::string text = absl::StrCat("rank ", fault.rank, ": ", NameOf(fault.kind),
                                  ", ", kPoints[static_cast<int>(fault.point)],
                                  ", after ", fault.after);
  if (fault.kind == Kind::kCut || fault.kind == Kind::kDelayed) {
    absl::StrAppend(&text, ", to rank ", fault.peer);
  }
  if (fault.ticks > 0) absl::StrAppend(&text, ", for ", fault.ticks, " ticks");
  return text;
}

Fault RandomFault(uint64_t seed, int size) {
  std::mt19937_64 random(seed * 31 + size);
  const auto below = [&](int end) { return static_cast<int>(random() % end); };
  Fault fault;
  fault.kind = static_cast<Kind>(below(Fault::kKinds));
  fault.rank = below(size);
  fault.peer = (fault.rank + 1 + below(size - 1)) % size;
  const std::vector<Point> points = PointsOf(fault.kind);
  const auto count = static_cast<int>(points.size());
  fault.point = points[count == 1 ? 0 : below(count)];
  switch (fault.point) {
    case Point::kStart:
    case Point::kShutdown:
      break;
    case Point::kNegotiation:
    case Point::kAtGate:
    case Point::kPack:
    case Point::kUnpack:
      fault.after = below(1 << below(7));
      break;
    case Point::kSetMaking:
      fault.after = below(2);
      break;
    case Point::kAllocate:
      fault.after = below(5);
      break;
  }
  if (fault.recovers()) {
    fault.ticks = fault.kind == Kind::kSlow ? 1 : 1 + below(4);
  }
  return fault;
}

}  // namespace hvdlite::testing
