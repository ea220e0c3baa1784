#include "negotiation/world/world.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/config/config_loader.h"
#include "base/contain_exceptions.h"
#include "base/end_note.h"
#include "base/environment.h"
#include "base/fixed_point.h"
#include "base/fork_mark.h"
#include "base/launcher_environment.h"
#include "base/malloc_settings.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "negotiation/engine/watchdog.h"
#include "negotiation/explain/start_summary.h"
#include "negotiation/explain/start_watch.h"
#include "negotiation/world/coordinator_cpu.h"
#include "negotiation/world/start_agreement.h"
#include "timeline/record/part_merge.h"
#include "timeline/record/resource_sampler.h"

namespace hvdlite::internal {
namespace {

// The exit code of a process that is stuck in MPI: in the data plane, or at its
// start.
constexpr int kStuckExitCode = 75;
// How long a background thread with a core of its own spins before it sleeps.
constexpr absl::Duration kSpinOnCoreOfItsOwn = absl::Microseconds(20);
// The longest window over which a rank reports its CPU time to others.
constexpr absl::Duration kLongestUsageWindow = absl::Seconds(10);

absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(
    const Config& config, StartWatch& watch,
    const collective::MpiRanks& ranks) {
  if (config.backend == "single") {
    auto communicator = collective::CreateSingleRankCommunicator();
    const collective::Topology topology =
        collective::MakeTopology(0, {0}, {base::HostName()});
    // This world needs neither, but other worlds of the same configuration do.
    HVDLITE_RETURN_IF_ERROR(
        collective::WithVirtualNodes(topology, config.virtual_nodes).status());
    HVDLITE_RETURN_IF_ERROR(
        ReadAllreduceTable(*communicator, config.allreduce_table).status());
    HVDLITE_ASSIGN_OR_RETURN(auto channel,
                             negotiation::CreateSingleRankChannel());
    return CreateLocalBackend(topology, std::move(communicator),
                              std::move(channel));
  }
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                           CreateMpiBackend(config, watch, ranks));
  // The launcher started ranks that were lost or belong to others now.
  const absl::Status status =
      ranks.survivors || ranks.communicator.has_value()
          ? absl::OkStatus()
          : CheckLauncher(base::ProcessEnvironment(), backend->topology().size);
  if (!status.ok()) {
    backend->Close().IgnoreError();
    return status;
  }
  return backend;
}

}  // namespace

World::World(const Config& config, const base::Logger& logger,
             std::unique_ptr<Backend> backend, const std::string& versions)
    : config_(config),
      logger_(logger),
      versions_(versions),
      start_ns_(clock_.NowNanos()),
      main_thread_(static_cast<pid_t>(gettid())),
      topology_(backend->topology()),
      only_once_(backend->only_once()),
      can_be_replaced_(backend->can_be_replaced()),
      backend_(std::move(backend)) {}

absl::StatusOr<std::shared_ptr<World>> World::Start(
    const Config& given, const collective::MpiRanks& ranks,
    const std::string& versions) {
  HVDLITE_RETURN_IF_ERROR(ValidateConfig(given));
  const Config config = WithAbsolutePaths(given);
  // Threads started here may use all CPUs of the process.
  const ScopedAffinity affinity(ProcessCpus());
  const base::SteadyClock clock;
  const int rank = static_cast<int>(
      base::RankOfLauncher(base::ProcessEnvironment()).value_or(-1));
  HVDLITE_ASSIGN_OR_RETURN(const base::Severity severity,
                           base::ParseSeverity(config.log_level));
  const base::Logger logger(severity, rank);
  const std::string tuned =
      base::TuneMalloc(config.malloc, base::ProcessEnvironment());
  if (rank <= 0) logger.Info(tuned);
  StartWatch watch(
      clock, base::SecondsOrNever(config.start_timeout_seconds),
      absl::StrCat(rank < 0 ? absl::StrCat("process ", getpid())
                            : absl::StrCat("rank ", rank),
                   " (", base::HostName(), ")"),
      {.warn = [&](const std::string& text) { logger.Warning(text); },
       .end =
           [&](const std::string& text) {
             base::ContainExceptions([&] {
               logger.Error(absl::StrCat(text, "; ending the process"));
             });
             _exit(kStuckExitCode);
           }});
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                           CreateBackend(config, watch, ranks));
  watch.Enter("agreeing on clocks, timeline and CPUs");
  return Start(config, std::move(backend), versions);
}

absl::StatusOr<std::shared_ptr<World>> World::Start(
    const Config& config, std::unique_ptr<Backend> backend,
    const std::string& versions) {
  HVDLITE_ASSIGN_OR_RETURN(const base::Severity severity,
                           base::ParseSeverity(config.log_level));
  const base::Logger logger(severity, backend->topology().rank);
  std::shared_ptr<World> world(
      new World(config, logger, std::move(backend), versions),
      base::DeleteUnlessForked<World>());
  const absl::Status status = world->StartCoordinator();
  if (!status.ok()) {
    (void)world->CloseRecorder();
    if (absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status)) {
      // All ranks have the same error.
      world->backend_->Close().IgnoreError();
    } else {
      world->Abandon();
    }
    return status;
  }
  return world;
}

absl::Status World::StartCoordinator() {
  collective::Communicator& communicator = backend_->communicator();
  if (topology_.rank == 0) {
    for (const std::string& warning : config_.warnings) {
      logger_.Warning(warning);
    }
    for (const std::string& warning : backend_->warnings()) {
      logger_.Warning(warning);
    }
    logger_.Debug(absl::StrCat("configuration:\n", DescribeConfig(config_)));
  }
  HVDLITE_ASSIGN_OR_RETURN(clock_offset_,
                           MeasureClockOffset(communicator, topology_, clock_));
  OpenReporter();
  absl::Status opened;
  if (!config_.timeline.empty()) opened = OpenRecorder(config_.timeline);
  // A rank that cannot do this does not make the world fail.
  HVDLITE_ASSIGN_OR_RETURN(
      const std::vector<std::string> problems,
      collective::GatherOrFail(communicator, std::string(opened.message())));
  for (size_t rank = 0; rank < problems.size(); ++rank) {
    if (problems[rank].empty()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        collective::DescribeRank(static_cast<int>(rank),
                                 topology_.host_of_rank),
        ": ", problems[rank]));
  }
  HVDLITE_ASSIGN_OR_RETURN(
      const CoordinatorCpu cpu,
      ChooseCoordinatorCpu(config_.coordinator_core, communicator, topology_,
                           logger_));
  HVDLITE_RETURN_IF_ERROR(LogStart(cpu));
  HVDLITE_ASSIGN_OR_RETURN(processes_, ExchangeProcesses(communicator));
  explainer_ = std::make_unique<Explainer>(
      clock_, std::min(base::SecondsOrNever(config_.stall_warning_seconds) / 4,
                       kLongestUsageWindow));
  negotiation::CoordinatorOptions options = {.config = config_,
                                             .coordinator_cpu = cpu.of_its_own};
  if (options.coordinator_cpu.has_value()) options.spin = kSpinOnCoreOfItsOwn;
  if (cpu.oversubscribed) options.spin_while_waiting = absl::ZeroDuration();
  coordinator_ = std::make_unique<negotiation::Coordinator>(
      options,
      negotiation::CoordinatorEnvironment{
          .channel = backend_->channel(),
          .communicator = communicator,
          .topology = topology_,
          .clock = clock_,
          .logger = logger_,
          .stuck =
              [this](const absl::Status& status) { EndStuckProcess(status); },
          .ended =
              [](const absl::Status& status) {
                base::NoteWorldEnded(base::ProcessEnvironment(),
                                     std::string(status.message()));
              },
          .sample = [this] { explainer_->Sample(); },
          .explain = [this] { return explainer_->Explain(); },
          .look =
              [this](int rank) -> std::optional<negotiation::ProcessSample> {
            const auto index = static_cast<size_t>(rank);
            if (!processes_.visible[index]) return std::nullopt;
            return explainer_->Look((*processes_.pids)[index]);
          },
          .pids = processes_.pids});
  coordinator_->SetRecorder(recorder());
  usr2_ =
      std::make_unique<Usr2Handler>([this] { coordinator_->AskEverybody(); });
  return absl::OkStatus();
}

absl::Status World::LogStart(const CoordinatorCpu& cpu) {
  collective::Communicator& communicator = backend_->communicator();
  const cpu_set_t cpus = ProcessCpus();
  const int threads = OpenMpThreads();
  const std::string waiting =
      DescribeThreadsThatWait(threads, CPU_COUNT(&cpus), cpu.ranks_on_the_same);
  const std::vector<std::string>& hosts = topology_.host_of_rank;
  const auto own_host = hosts.begin() + topology_.rank;
  if (!waiting.empty() &&
      std::find(hosts.begin(), own_host, *own_host) == own_host) {
    logger_.Warning(waiting);
  }
  HVDLITE_ASSIGN_OR_RETURN(
      std::vector<ProcessFacts> of_rank,
      ExchangeFacts(communicator,
                    {.versions = VersionsOf(versions_),
                     .cpus = CPU_COUNT(&cpus),
                     .threads = threads,
                     .coordinator_has_core = cpu.of_its_own.has_value()},
                    logger_.Writes(base::Severity::kInfo)));
  if (of_rank.empty() || topology_.rank != 0) return absl::OkStatus();
  logger_.Info(SummariseStart(
      {.topology = topology_,
       .config = config_,
       .tensors_by = absl::StrCat(
           communicator.shares_memory() ? "shared memory and " : "",
           communicator.name()),
       .control_by = std::string(backend_->channel().name()),
       .cpu_list = FormatCpus(cpus),
       .of_rank = std::move(of_rank)}));
  return absl::OkStatus();
}

void World::EndStuckProcess(const absl::Status& status) {
  // The process ends even without memory.
  base::ContainExceptions([&] {
    logger_.Error(absl::StrCat(status.message(), "; ending the process"));
  });
  std::shared_ptr<timeline::TraceRecorder> trace;
  {
    base::MutexLock lock(&mutex_);
    trace = trace_recorder_;
  }
  if (trace != nullptr) {
    base::ContainExceptions([&] { trace->Close().IgnoreError(); });
  }
  _exit(kStuckExitCode);
}

absl::Status World::Close(const std::string& reason, absl::Duration timeout) {
  // Rank 0 merges the per-rank trace files once all ranks have closed theirs.
  const auto trace_path =
      std::make_shared<absl::StatusOr<std::string>>(std::string());
  absl::Status status = coordinator_->Shutdown(
      reason, timeout, [this, trace_path] { *trace_path = CloseRecorder(); });
  if (!status.ok()) (void)CloseRecorder();
  CloseReporter();
  base::ContainExceptions([&] {
    logger_.Info(absl::StrCat(
        "coordinating took ",
        base::FixedPoint(absl::ToDoubleSeconds(coordinator_->cpu_time()), 3),
        " s of CPU time in ",
        base::FixedPoint(
            static_cast<double>(clock_.NowNanos() - start_ns_) * 1e-9, 3),
        " s"));
  });
  usr2_.reset();
  abandoned_ = absl::IsDeadlineExceeded(status) || coordinator_->interrupted();
  if (status.ok() && !trace_path->ok()) {
    logger_.Warning(trace_path->status().message());
  }
  if (abandoned_) return status;
  coordinator_->Close();
  explainer_.reset();
  if (!status.ok()) {
    Abandon();
    return status;
  }
  // All ranks have reached this line. If a rank stops or dies now, the others
  // would wait inside MPI for ever.
  negotiation::Watchdog watchdog(
      clock_, base::SecondsOrNever(config_.watchdog_seconds),
      [this](const std::string& what) {
        EndStuckProcess(absl::UnavailableError(absl::StrCat(
            "rank ", topology_.rank, " has not come back from ", what, " for ",
            config_.watchdog_seconds,
            " s; another rank has probably died or been stopped")));
      },
      /*slowness=*/{});
  {
    const negotiation::Watched watched(watchdog,
                                       {.what = "shutdown()'s last barrier"});
    status = backend_->communicator().Barrier();
  }
  if (!status.ok()) {
    Abandon();
    return status;
  }
  {
    const negotiation::Watched watched(watchdog, {.what = "ending MPI"});
    status = backend_->Close();
  }
  backend_.reset();
  if (status.ok()) base::NoteWorldLeft(base::ProcessEnvironment());
  // The time depends on the size of the trace; no other rank waits for rank 0
  // any more.
  if (trace_path->ok() && !(*trace_path)->empty()) MergeTrace(**trace_path);
  return status;
}

void World::Abandon() {
  backend_->Abandon();
  backend_.reset();
}

int64_t World::NextNumber(absl::string_view kind,
                          negotiation::ProcessSetId process_set) {
  base::MutexLock lock(&mutex_);
  for (Numbers& numbers : numbers_) {
    if (numbers.process_set == process_set && numbers.kind == kind) {
      return numbers.next++;
    }
  }
  numbers_.push_back({std::string(kind), process_set, /*next=*/1});
  return 0;
}

std::string World::NextName(absl::string_view kind,
                            negotiation::ProcessSetId process_set) {
  const int64_t number = NextNumber(kind, process_set);
  const int64_t joins = joins_;
  if (joins == 0) return absl::StrCat(kind, ".noname.", number);
  return absl::StrCat(kind, ".noname.", joins, ".", number);
}

void World::CountJoin() {
  base::MutexLock lock(&mutex_);
  ++joins_;
  numbers_.clear();
}

void World::ForgetNumbers(negotiation::ProcessSetId process_set) {
  base::MutexLock lock(&mutex_);
  std::erase_if(numbers_, [&](const Numbers& numbers) {
    return numbers.process_set == process_set;
  });
}

void* World::Companion(absl::FunctionRef<std::shared_ptr<void>()> make) {
  base::MutexLock lock(&mutex_);
  if (companion_ == nullptr) companion_ = make();
  return companion_.get();
}

std::vector<timeline::TraceArg> World::RankFacts() const {
  const cpu_set_t cpus = ProcessCpus();
  return {{"cpus", int64_t{CPU_COUNT(&cpus)}},
          {"cpu_list", FormatCpus(cpus)},
          {"fusion_threshold_bytes", config_.fusion_threshold_bytes},
          {"min_batch_bytes", config_.min_batch_bytes}};
}

std::function<std::vector<timeline::TraceEvent>()> World::MakeSampler() const {
  return [this,
          sampler = std::make_shared<timeline::ResourceSampler>(main_thread_)] {
    return sampler->Sample(clock_.NowNanos());
  };
}

void World::OpenReporter() {
  const auto tell = timeline::StepReportPipe(base::ProcessEnvironment());
  if (!tell) return;
  base::MutexLock lock(&mutex_);
  reporter_ = timeline::StepReporter::Start(
      {.rank = topology_.rank,
       .size = topology_.size,
       .host = topology_.host_of_rank[static_cast<size_t>(topology_.rank)],
       .facts = RankFacts(),
       .sample = MakeSampler(),
       .tell = tell},
      clock_);
}

absl::Status World::OpenRecorder(const std::string& given) {
  if (is_recording()) {
    return absl::FailedPreconditionError(
        "the timeline is being recorded already; call stop_timeline() first");
  }
  // It is merged later.
  const std::string path = base::AbsolutePath(given);
  HVDLITE_ASSIGN_OR_RETURN(const auto steps,
                           ParseSteps(config_.timeline_steps));
  const absl::Time now = absl::Now();
  std::vector<timeline::TraceArg> facts = {
      {"clock_uncertainty_ns", clock_offset_.uncertainty_ns},
      {"start_time",
       absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", now, absl::UTCTimeZone())},
      {"start_unix_ns", absl::ToUnixNanos(now)},
      {"start_clock_ns", clock_.NowNanos()}};
  for (timeline::TraceArg& fact : RankFacts()) facts.push_back(std::move(fact));
  HVDLITE_ASSIGN_OR_RETURN(
      std::shared_ptr<timeline::TraceRecorder> opened,
      timeline::TraceRecorder::Open(
          {.path = path,
           .rank = topology_.rank,
           .size = topology_.size,
           .host = topology_.host_of_rank[static_cast<size_t>(topology_.rank)],
           .clock_offset_ns = clock_offset_.offset_ns,
           .facts = std::move(facts),
           .steps = steps,
           .sample = MakeSampler()},
          clock_));
  {
    base::MutexLock lock(&mutex_);
    trace_recorder_ = opened;
    trace_path_ = path;
    if (reporter_ != nullptr) reporter_->PassOnTo(opened);
  }
  if (coordinator_ != nullptr) coordinator_->SetRecorder(recorder());
  return absl::OkStatus();
}

absl::StatusOr<std::string> World::CloseRecorder() {
  std::shared_ptr<timeline::TraceRecorder> closing;
  std::string path;
  {
    base::MutexLock lock(&mutex_);
    closing = std::move(trace_recorder_);
    trace_recorder_ = nullptr;
    path = std::exchange(trace_path_, "");
    if (reporter_ != nullptr) reporter_->PassOnTo(nullptr);
  }
  if (closing == nullptr) return path;
  if (coordinator_ != nullptr) coordinator_->SetRecorder(recorder());
  HVDLITE_RETURN_IF_ERROR(closing->Close());
  if (closing->dropped_events() > 0) {
    logger_.Warning(absl::StrCat("the timeline ", path, " lacks ",
                                 closing->dropped_events(),
                                 " events of this rank: they came faster than "
                                 "the file could be written"));
  }
  return path;
}

void World::CloseReporter() {
  std::shared_ptr<timeline::StepReporter> closing;
  {
    base::MutexLock lock(&mutex_);
    closing = std::exchange(reporter_, nullptr);
  }
  if (closing == nullptr) return;
  if (coordinator_ != nullptr) coordinator_->SetRecorder(recorder());
  closing->Close().IgnoreError();
}

void World::MergeTrace(const std::string& path) {
  if (topology_.rank != 0) return;
  const absl::Status status = timeline::MergeTraceParts(path, topology_.size);
  if (status.ok()) return;
  logger_.Warning(absl::StrCat("the per-rank trace files were not merged into ",
                               path, ": ", status.message(),
                               "; timeline_viewer can also read them"));
}

std::shared_ptr<timeline::TraceRecorder> World::recorder() const {
  base::MutexLock lock(&mutex_);
  if (reporter_ != nullptr) return reporter_;
  return trace_recorder_;
}

bool World::is_recording() const {
  base::MutexLock lock(&mutex_);
  return trace_recorder_ != nullptr;
}

}  // namespace hvdlite::internal
