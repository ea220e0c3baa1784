#include <hvdlite/timeline.h>

#include <string>
#include <utility>

#include "negotiation/world/world_state.h"
#include "timeline/trace_event.h"
#include "torch_plugin/ops/operation_call.h"

namespace hvdlite {

namespace {

// Returns once all ranks have come; throws on all of them if `status` is an
// error on any.
void AgreeOn(const char* what, const absl::Status& status) {
  internal::OperationCall call(what, /*name=*/"", ProcessSet());
  call.request().collective = negotiation::Collective::kBarrier;
  if (!status.ok()) call.Refuse(std::string(status.message()));
  call.Run();
}

}  // namespace

void start_timeline(const std::string& path) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  const absl::Status opened = world->OpenRecorder(path);
  try {
    AgreeOn("start_timeline", opened);
  } catch (...) {
    // A recording that was on before stays.
    if (opened.ok()) (void)world->CloseRecorder();
    throw;
  }
}

void stop_timeline() {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  if (world->recorder() == nullptr) return;
  const absl::StatusOr<std::string> path = world->CloseRecorder();
  AgreeOn("stop_timeline", path.status());
  world->MergeTrace(*path);
}

TraceSpan::TraceSpan(std::string name) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorldOrNull();
  if (world == nullptr || world->recorder() == nullptr) return;
  name_ = std::move(name);
  start_ns_ = world->clock().NowNanos();
}

TraceSpan::~TraceSpan() {
  if (name_.empty()) return;
  const std::shared_ptr<internal::World> world = internal::CurrentWorldOrNull();
  if (world == nullptr) return;
  const std::shared_ptr<timeline::TraceRecorder> recorder = world->recorder();
  if (recorder == nullptr) return;
  recorder->Record({.name = std::move(name_),
                    .lane = timeline::kUserLane,
                    .start_ns = start_ns_,
                    .duration_ns = world->clock().NowNanos() - start_ns_,
                    .args = {}});
}

}  // namespace hvdlite
