// Implements init() and shutdown(), process sets, and the timeline.
#include "negotiation/world/world.h"

#include <ATen/Parallel.h>
#include <hvdlite/errors.h>
#include <hvdlite/ops.h>
#include <hvdlite/process_set.h>
#include <hvdlite/timeline.h>
#include <hvdlite/world.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/contain_exceptions.h"
#include "negotiation/world/current_world.h"
#include "negotiation/world/process_set.h"
#include "timeline/record/trace_event.h"
#include "torch_plugin/ops/operation_call.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace {

// Why there cannot be a process set of `ranks` (ascending). Empty: there can
// be.
std::string RanksError(const std::vector<int>& ranks, int world_size) {
  if (ranks.empty()) return "a process set needs at least one rank";
  for (const int rank : ranks) {
    if (rank < 0 || rank >= world_size) {
      return absl::StrCat("rank ", rank,
                          " does not exist; the world has ranks 0 to ",
                          world_size - 1);
    }
  }
  const auto twice = absl::c_adjacent_find(ranks);
  if (twice != ranks.end()) {
    return absl::StrCat("rank ", *twice, " is given twice");
  }
  return "";
}

// Blocks until all ranks have called it. Throws on all of them if `status` is
// an error on any.
void AgreeOn(const char* what, const absl::Status& status) {
  internal::OperationCall call(what, /*name=*/"", ProcessSet());
  call.request().collective = negotiation::Collective::kBarrier;
  if (!status.ok()) call.SetLocalError(std::string(status.message()));
  call.Run();
}

// Like AgreeOn(), for start_timeline(). Throws on all ranks, with the first two
// ranks that differ, unless all paths have the same file name. Ranks may use
// different directories, as for HVDLITE_TIMELINE.
void AgreeOnPath(const std::string& path, const absl::Status& opened) {
  const auto last_part = [](const std::string& of) {
    return std::filesystem::path(of).filename().string();
  };
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  internal::OperationCall call("start_timeline", /*name=*/"", ProcessSet());
  // The ranks compare their Requests anyway. So this Request carries a hash of
  // the file name, which needs no further exchange.
  call.request().collective = negotiation::Collective::kBarrier;
  call.request().root_rank =
      static_cast<int>(std::hash<std::string>()(last_part(path)) &
                       std::numeric_limits<int>::max());
  if (!opened.ok()) call.SetLocalError(std::string(opened.message()));
  std::exception_ptr disagreement;
  try {
    call.Run();
    return;
  } catch (const WorldBroken&) {
    throw;
  } catch (const c10::Error&) {
    disagreement = std::current_exception();
  }
  // An error of opening a file comes first.
  const std::vector<std::string> paths =
      allgather_object(absl::StrCat(opened.ok() ? "+" : "-", path));
  if (absl::c_any_of(paths, [](const std::string& one) {
        return !one.empty() && one.front() == '-';
      })) {
    std::rethrow_exception(disagreement);
  }
  // A rank that has joined has an empty path.
  const auto first = absl::c_find_if(
      paths, [](const std::string& one) { return !one.empty(); });
  for (auto other = first; other != paths.end(); ++other) {
    if (other->empty() || last_part(*other) == last_part(*first)) continue;
    internal::ThrowError(absl::StrCat(
        "start_timeline: the paths of the ranks differ: rank ",
        first - paths.begin(), " has '", first->substr(1), "', rank ",
        other - paths.begin(), " has '", other->substr(1),
        "'; use the same path on every rank, or paths with the same file "
        "name"));
  }
  std::rethrow_exception(disagreement);
}

}  // namespace

void init() { init(Config::from_env()); }

void init(const Config& config) {
  internal::ThrowIfForked();
  at::get_num_threads();  // LibTorch sets the threads of OpenMP, too
  internal::ThrowIfConfigError(
      internal::StartCurrentWorld(config, {}, build_info()));
}

void shutdown() {
  internal::ThrowIfForked();
  const std::shared_ptr<internal::World> world = internal::TakeCurrentWorld();
  if (world == nullptr) return;
  const absl::Status status = internal::CloseWorld(
      world,
      absl::StrCat("rank ", world->topology().rank,
                   " called hvdlite::shutdown()"),
      base::SecondsOrNever(world->config().shutdown_timeout_seconds));
  if (absl::IsUnavailable(status)) {
    world->logger().Warning(
        absl::StrCat("the world was broken at shutdown: ", status.message()));
    return;
  }
  internal::ThrowIfError(status);
}

bool is_initialized() { return internal::CurrentWorldOrNull() != nullptr; }

int rank() { return internal::CurrentWorld()->topology().rank; }
int size() { return internal::CurrentWorld()->topology().size; }
int local_rank() { return internal::CurrentWorld()->topology().local_rank; }
int local_size() { return internal::CurrentWorld()->topology().local_size; }
int cross_rank() { return internal::CurrentWorld()->topology().cross_rank; }
int cross_size() { return internal::CurrentWorld()->topology().cross_size; }

bool is_homogeneous() {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  const collective::Topology& topology = world->topology();
  std::vector<int> ranks(static_cast<size_t>(topology.cross_size));
  for (const int host : topology.cross_rank_of_rank) ++ranks[host];
  return absl::c_all_of(ranks, [&](int count) { return count == ranks[0]; });
}

ProcessSet::ProcessSet(std::shared_ptr<const internal::ProcessSetState> state)
    : state_(std::move(state)) {}

int ProcessSet::rank() const {
  const int rank = internal::CurrentWorld()->topology().rank;
  if (state_ == nullptr) return rank;
  const auto place = absl::c_lower_bound(state_->ranks, rank);
  if (place == state_->ranks.end() || *place != rank) return -1;
  return static_cast<int>(place - state_->ranks.begin());
}

int ProcessSet::size() const { return static_cast<int>(ranks().size()); }

bool ProcessSet::included() const { return rank() >= 0; }

const std::vector<int>& ProcessSet::ranks() const {
  const int world_size = internal::CurrentWorld()->topology().size;
  return state_ == nullptr ? internal::AllRanks(world_size) : state_->ranks;
}

ProcessSet global_process_set() { return ProcessSet(); }

ProcessSet add_process_set(std::vector<int> ranks) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  internal::OperationCall call("add_process_set", /*name=*/"", ProcessSet());
  absl::c_sort(ranks);
  call.request().collective = negotiation::Collective::kAddProcessSet;
  call.SetLocalError(RanksError(ranks, world->topology().size));
  call.request().members = ranks;
  const auto operation = call.Run();
  auto state = std::make_shared<internal::ProcessSetState>();
  state->id = static_cast<negotiation::ProcessSetId>(operation->value());
  state->ranks = std::move(ranks);
  state->world = world;
  return ProcessSet(std::move(state));
}

void remove_process_set(const ProcessSet& process_set) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  internal::OperationCall call("remove_process_set", /*name=*/"", ProcessSet());
  call.request().collective = negotiation::Collective::kRemoveProcessSet;
  const auto& state = process_set.state();
  if (state == nullptr) {
    call.SetLocalError("the set of all ranks cannot be removed");
  } else if (state->world.lock() != world) {
    call.SetLocalError(
        "the process set was added before the last hvdlite::init()");
  } else if (state->removed) {
    call.SetLocalError(
        absl::StrCat("process set ", state->id, " has been removed before"));
  } else {
    call.request().removed = state->id;
  }
  call.Run();
  state->removed = true;
  world->ForgetNumbers(state->id);
}

void start_timeline(const std::string& path) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  const absl::Status opened = world->OpenRecorder(path);
  try {
    AgreeOnPath(path, opened);
  } catch (...) {
    // Do not close a recording that was already on.
    if (opened.ok()) (void)world->CloseRecorder();
    throw;
  }
}

void stop_timeline() {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  if (!world->is_recording()) return;
  const absl::StatusOr<std::string> path = world->CloseRecorder();
  AgreeOn("stop_timeline", path.status());
  world->MergeTrace(*path);
}

void add_step_work(int64_t amount) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorldOrNull();
  if (world != nullptr) world->step_meter().AddWork(amount);
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
  base::ContainExceptions([&] {
    recorder->Record({.name = std::move(name_),
                      .track = timeline::kUserTrack,
                      .start_ns = start_ns_,
                      .duration_ns = world->clock().NowNanos() - start_ns_,
                      .args = {}});
  });
}

}  // namespace hvdlite
