#include "collective/in_process/world.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "collective/in_process/name_ranks.h"

namespace hvdlite::collective {
namespace {

using base::MutexLock;

std::vector<int> FirstRanks(size_t count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

World::World(std::vector<int> ranks_in_outermost, bool is_subgroup,
             InProcessOptions options)
    : all_ranks_(FirstRanks(ranks_in_outermost.size())),
      ranks_in_outermost_(std::move(ranks_in_outermost)),
      where_(is_subgroup ? absl::StrCat(" (counted in the subgroup of ",
                                        NameRanks(ranks_in_outermost_), ")")
                         : ""),
      options_(options),
      places_(all_ranks_.size()) {}

absl::Status World::Meet(int rank, const Call& call) {
  std::vector<Call> calls;
  {
    MutexLock lock(&mutex_);
    if (broken_.code != absl::StatusCode::kOk) return broken_.ToStatus();
    places_[rank].call = call;
    places_[rank].state = Place::State::kWaiting;
    calls = StartIfComplete(call);
    if (calls.empty()) {
      EndHopelessWaits();
      return Wait(rank);
    }
  }
  const absl::Status status = Run(calls);
  MutexLock lock(&mutex_);
  Finish(call.members, status);
  places_[rank].state = Place::State::kAway;
  return places_[rank].outcome.ToStatus();
}

void World::Leave(int rank) {
  MutexLock lock(&mutex_);
  places_[rank].gone = true;
  EndHopelessWaits();
}

bool World::IsWaitingFor(int rank, const Call& call) const {
  const Place& place = places_[rank];
  return place.state == Place::State::kWaiting &&
         place.call.members == call.members;
}

std::vector<Call> World::StartIfComplete(const Call& call) {
  for (const int member : call.members) {
    if (!IsWaitingFor(member, call)) return {};
  }
  std::vector<Call> calls;
  calls.reserve(call.members.size());
  for (const int member : call.members) {
    places_[member].state = Place::State::kRunning;
    calls.push_back(places_[member].call);
  }
  return calls;
}

absl::Status World::Run(absl::Span<const Call> calls) {
  HVDLITE_RETURN_IF_ERROR(CheckCalls(calls));
  if (calls[0].kind == Call::Kind::kCreateSubgroup) {
    std::vector<int> ranks;
    for (const int member : calls[0].members) {
      ranks.push_back(ranks_in_outermost_[member]);
    }
    const auto subgroup = std::make_shared<World>(
        std::move(ranks), /*is_subgroup=*/true, options_);
    for (const Call& call : calls) *call.subgroup = subgroup;
  } else {
    CarryOut(calls);
  }
  return absl::OkStatus();
}

absl::Status World::Wait(int rank) {
  Place& place = places_[rank];
  // Read only where it counts: no clock when waiting for ever or not at all.
  const bool bounded = options_.deadline != absl::InfiniteDuration();
  const absl::Time end = bounded && options_.deadline > absl::ZeroDuration()
                             ? absl::Now() + options_.deadline
                             : absl::InfinitePast();
  while (place.state == Place::State::kWaiting &&
         broken_.code == absl::StatusCode::kOk) {
    if (!bounded) {
      place.changed.Wait(&mutex_);
      continue;
    }
    const absl::Duration left =
        end == absl::InfinitePast() ? absl::ZeroDuration() : end - absl::Now();
    if (left <= absl::ZeroDuration()) {
      BreakForMissing(place.call);
    } else {
      place.changed.WaitFor(&mutex_, left);
    }
  }
  // Nobody leaves while another thread works on its buffers.
  while (place.state == Place::State::kRunning) place.changed.Wait(&mutex_);
  const Outcome& outcome =
      place.state == Place::State::kDone ? place.outcome : broken_;
  place.state = Place::State::kAway;
  return outcome.ToStatus();
}

void World::EndHopelessWaits() {
  if (broken_.code != absl::StatusCode::kOk) return;
  std::vector<int> waiting;
  std::vector<int> gone;
  bool somebody_may_come = false;
  for (const int rank : all_ranks_) {
    if (places_[rank].gone) {
      gone.push_back(rank);
    } else if (places_[rank].state == Place::State::kWaiting) {
      waiting.push_back(rank);
    } else {
      somebody_may_come = true;
    }
  }
  std::vector<Call> calls;
  for (const int rank : waiting) {
    const Call& call = places_[rank].call;
    if (std::find_first_of(call.members.begin(), call.members.end(),
                           gone.begin(), gone.end()) != call.members.end()) {
      Break(absl::StatusCode::kUnavailable,
            absl::StrCat(NameOf(call.kind), ": the communicator of ",
                         NameRanks(gone), " of ", size(), " is gone"));
      return;
    }
    calls.push_back(call);
  }
  if (!waiting.empty() && !somebody_may_come) {
    Finish(waiting, DifferentCallsError(waiting, calls));
  }
}

void World::Finish(absl::Span<const int> ranks, const absl::Status& status) {
  for (const int rank : ranks) {
    Place& place = places_[rank];
    place.outcome = {
        status.code(),
        status.ok() ? std::string() : absl::StrCat(status.message(), where_)};
    place.state = Place::State::kDone;
    place.changed.NotifyOne();
  }
}

void World::BreakForMissing(const Call& call) {
  std::vector<int> missing;
  for (const int member : call.members) {
    if (!IsWaitingFor(member, call)) missing.push_back(member);
  }
  Break(absl::StatusCode::kDeadlineExceeded,
        absl::StrCat(NameOf(call.kind), ": ", NameRanks(missing), " of ",
                     size(), " did not arrive within ",
                     absl::FormatDuration(options_.deadline)));
}

void World::Break(absl::StatusCode code, const std::string& message) {
  broken_ = {code, absl::StrCat(message, where_)};
  for (Place& place : places_) place.changed.NotifyOne();
}

}  // namespace hvdlite::collective
