#include <ATen/Functions.h>
#include <hvdlite/ops.h>
#include <hvdlite/timeline.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "timeline/trace_event.h"
#include "torch_plugin/throw_status.h"
#include "torch_plugin/world_state.h"

namespace hvdlite {

void start_timeline(const std::string& path) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  const absl::Status opened = world->OpenRecorder(path);
  // failed[rank]
  at::Tensor failed = at::zeros({world->topology().size}, at::kInt);
  if (!opened.ok()) failed[world->topology().rank] = 1;
  allreduce_(failed, AllreduceOptions()
                         .name(world->NextName("start_timeline"))
                         .op(ReduceOp::Sum));
  std::vector<int> ranks;
  for (int rank = 0; rank < world->topology().size; ++rank) {
    if (failed[rank].item<int>() != 0) ranks.push_back(rank);
  }
  if (ranks.empty()) return;
  // A recording that was on before stays.
  if (opened.ok()) (void)world->CloseRecorder();
  internal::ThrowError(absl::StrCat(
      "start_timeline: ", opened.ok() ? absl::StrCat("could not start on rank ",
                                                     absl::StrJoin(ranks, ", "))
                                      : std::string(opened.message())));
}

void stop_timeline() {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  if (world->recorder() == nullptr) return;
  const absl::StatusOr<std::string> path = world->CloseRecorder();
  barrier();
  if (path.ok()) world->MergeTrace(*path);
  internal::ThrowIfError(path.status());
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
