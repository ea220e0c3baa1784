#include "tools/scaling_sweep/run/sweep_runner.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/environment.h"
#include "base/status_macros.h"
#include "support/child_process.h"
#include "support/process.h"
#include "support/text_table.h"
#include "timeline/record/trace_format.h"
#include "tools/scaling_sweep/run/command.h"
#include "tools/scaling_sweep/run/failure.h"
#include "tools/scaling_sweep/run/launch_plan.h"
#include "tools/scaling_sweep/run/program_report.h"
#include "tools/scaling_sweep/run/results.h"

namespace hvdlite::scaling_sweep {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kDryRunLimit = absl::Seconds(30);

// Returns the path below `root` of `trace`; of rank 0's trace file if the
// ranks' files were not merged; or "".
std::string TraceIn(const fs::path& root, const std::string& trace) {
  for (const std::string& file : {trace, timeline::TracePartPath(trace, 0)}) {
    if (fs::exists(root / file)) return file;
  }
  return "";
}

std::string ResultText(const Sample& sample) {
  if (!sample.items_per_second) {
    return absl::StrCat("failed: ", sample.failure, "; see ", sample.log);
  }
  std::string text = absl::StrFormat(
      "%s items/s, %.1f s", support::NumberText(*sample.items_per_second),
      sample.seconds);
  if (sample.threads == 0 && sample.threads_used > 0) {
    absl::StrAppend(&text, ", ", sample.threads_used,
                    sample.threads_used == 1 ? " thread" : " threads",
                    " a rank");
  }
  return text;
}

// Runs a command in a new process group, with its output in the file `log`.
absl::StatusOr<support::ChildEnd> RunLogged(const Command& command,
                                            const std::string& log,
                                            absl::Duration limit,
                                            absl::Duration grace,
                                            const support::SignalPipe& stop) {
  absl::StatusOr<support::ChildEnd> end =
      support::RunChild({.command = command.arguments,
                         .environment = base::EnvironmentEntries(
                             base::ProcessEnvironment(), command.environment),
                         .own_group = true,
                         .signal_on_death = SIGTERM,
                         .log_file = log,
                         .limit = limit,
                         .grace = grace,
                         .stop = &stop});
  if (end.ok() || absl::StartsWith(end.status().message(), "cannot write")) {
    return end;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      end.status().message(), "; give its path, or add its directory to PATH"));
}

// Whether the hosts of `nodes` nodes are this host.
bool RunsOnThisHost(const Spec& spec, int nodes, const std::string& host) {
  return spec.host().empty() ||
         std::any_of(spec.host().begin(), spec.host().begin() + nodes,
                     [&](const std::string& name) {
                       return name == "localhost" || name == "127.0.0.1" ||
                              name.substr(0, name.find('.')) ==
                                  host.substr(0, host.find('.'));
                     });
}

// Returns the cores of a node.
Processors ProcessorsOf(const Spec& spec,
                        const support::MachineFacts& machine) {
  const int cores = spec.cores_per_node();
  if (cores > 0) return {.cores = cores, .cpus = cores};
  return {.cores = machine.cores, .cpus = machine.cpus};
}

absl::Status CheckHosts(const Configuration& configuration, int hosts) {
  if (hosts == configuration.nodes) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "hvdliterun would put ", Describe(configuration), ", on ", hosts,
      hosts == 1 ? " host" : " hosts", ", not on ", configuration.nodes,
      "; in a batch job of several hosts, name them: --hosts n1,n2, or "
      "host: [\"n1\", \"n2\"] in the spec file (a world on several: world { "
      "nodes: 2 ranks_per_node: 1 })"));
}

// Whether all processes of a run are on this host and descend from this
// process. In batch systems daemons start the ranks.
bool IsBelowThisProcess(const Configuration& configuration,
                        const RunnerOptions& options) {
  if (configuration.alone) return true;
  for (const char* job : {"SLURM_JOB_ID", "PJM_JOBID", "PBS_JOBID"}) {
    if (options.environment.get(job).has_value()) return false;
  }
  return configuration.nodes == 1 &&
         RunsOnThisHost(options.spec, 1, options.machine.host);
}

// Whether the launcher looks for the program as this process does: on this
// host (unless the flags of the spec differ) and in the same PATH.
bool IsSearchedHere(const Configuration& configuration,
                    const RunnerOptions& options) {
  const bool other_path = std::any_of(
      configuration.environment.begin(), configuration.environment.end(),
      [](const auto& variable) { return variable.first == "PATH"; });
  return !configuration.alone && !other_path &&
         configuration.launcher_flags.empty() &&
         RunsOnThisHost(options.spec, configuration.nodes,
                        options.machine.host);
}

absl::Status MakeDirectory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot make the directory '", directory.string(),
                   "': ", error.message()));
}

// Returns the runs (indices in `runs`) that show whether the program works: for
// each setting the smallest world, and the largest of all, which may have
// enough time and memory when the smallest has not.
std::vector<size_t> FirstRuns(const std::vector<Configuration>& configurations,
                              const std::vector<PlannedRun>& runs) {
  const auto of = [&](size_t i) -> const Configuration& {
    return configurations[runs[i].configuration];
  };
  const auto size = [&](size_t i) { return of(i).ranks(); };
  std::map<std::string, size_t> smallest;  // by setting
  std::optional<size_t> largest;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].repeat > 0) continue;
    const auto [at, is_new] = smallest.emplace(of(i).setting, i);
    if (!is_new && size(i) < size(at->second)) at->second = i;
    if (!largest || size(*largest) < size(i)) largest = i;
  }
  std::vector<size_t> first;
  for (const auto& [setting, i] : smallest) first.push_back(i);
  std::stable_sort(first.begin(), first.end(), [&](size_t a, size_t b) {
    return std::make_pair(size(a), a) < std::make_pair(size(b), b);
  });
  if (largest && std::count(first.begin(), first.end(), *largest) == 0) {
    first.push_back(*largest);
  }
  return first;
}

std::map<std::string, std::string> MachineInWords() {
  const auto words = support::DescribeMachine();
  return {words.begin(), words.end()};
}

}  // namespace

SweepRunner::SweepRunner(RunnerOptions options, ResultsFile& results,
                         const support::SignalPipe& stop, std::ostream& out)
    : options_(std::move(options)),
      results_(results),
      stop_(stop),
      out_(out),
      machine_(MachineInWords()),
      limit_{.seconds = options_.spec.time_limit_seconds()} {}

bool SweepRunner::IsThere(const Configuration& configuration,
                          int repeat) const {
  const std::vector<Sample> samples =
      SamplesOf(results_.samples(), Key(configuration));
  return std::any_of(samples.begin(), samples.end(), [&](const Sample& sample) {
    return sample.repeat == repeat &&
           (sample.items_per_second || !options_.retry_failed);
  });
}

absl::Status SweepRunner::RunAll(
    const std::vector<Configuration>& configurations,
    const std::vector<PlannedRun>& runs) {
  HVDLITE_RETURN_IF_ERROR(TryProgram(configurations, runs));
  for (size_t i = 0; i < runs.size(); ++i) {
    const Configuration& configuration = configurations[runs[i].configuration];
    if (IsThere(configuration, runs[i].repeat)) continue;
    HVDLITE_ASSIGN_OR_RETURN(const Sample sample,
                             RunOnce(configuration, runs[i].repeat));
    HVDLITE_RETURN_IF_ERROR(results_.Append(sample));
    Tell(i + 1, runs.size(), configuration, sample);
  }
  return absl::OkStatus();
}

void SweepRunner::Tell(size_t number, size_t all,
                       const Configuration& configuration,
                       const Sample& sample) {
  out_ << "[" << number << "/" << all << "] " << Describe(configuration)
       << ", repeat " << sample.repeat + 1 << ": " << ResultText(sample)
       << (sample.oversubscribed ? " (oversubscribed)" : "") << std::endl;
}

absl::Status SweepRunner::TryProgram(
    const std::vector<Configuration>& configurations,
    const std::vector<PlannedRun>& runs) {
  const auto succeeded = [](const Sample& sample) {
    return sample.items_per_second.has_value();
  };
  const std::vector<Sample>& known = results_.samples();
  if (std::any_of(known.begin(), known.end(), succeeded)) {
    return absl::OkStatus();
  }
  std::vector<Sample> failed;
  for (const size_t i : FirstRuns(configurations, runs)) {
    const Configuration& configuration = configurations[runs[i].configuration];
    if (IsThere(configuration, runs[i].repeat)) continue;
    if (failed.empty()) {
      out_ << "first a run that shows whether the program works, limit: "
           << limit_.seconds << " s" << std::endl;
    }
    HVDLITE_ASSIGN_OR_RETURN(const Sample sample,
                             RunOnce(configuration, runs[i].repeat));
    Tell(i + 1, runs.size(), configuration, sample);
    failed.push_back(sample);
    if (succeeded(sample)) {
      for (const Sample& one : failed) {
        HVDLITE_RETURN_IF_ERROR(results_.Append(one));
      }
      return absl::OkStatus();
    }
    // It succeeded but reported no speed; so it would in another world.
    if (sample.exit_code == 0 && sample.seconds < limit_.seconds) break;
  }
  if (failed.empty()) return absl::OkStatus();
  const Sample& last = failed.back();
  const auto described = std::find_if(
      configurations.begin(), configurations.end(),
      [&](const auto& one) { return Key(one) == last.configuration; });
  return absl::AbortedError(FirstRunsFailure(
      options_.spec, last, limit_, Describe(*described), results_.directory()));
}

absl::StatusOr<std::optional<LaunchPlan>> SweepRunner::PlanFor(
    const Configuration& configuration) {
  if (configuration.alone || !RunsOnThisHost(options_.spec, configuration.nodes,
                                             options_.machine.host)) {
    return std::nullopt;
  }
  const auto known = plans_.find(Key(configuration));
  if (known != plans_.end()) return known->second;
  const fs::path directory =
      fs::absolute(results_.directory()) / DirectoryOf(configuration);
  HVDLITE_RETURN_IF_ERROR(MakeDirectory(directory));
  const std::string log = (directory / "launch_plan.txt").string();
  const absl::StatusOr<support::ChildEnd> end = RunLogged(
      DryRunOf(BuildCommand(options_.spec, configuration,
                            {.report = (directory / "report.json").string(),
                             .trace = "",
                             .log = ""},
                            options_.launcher, /*oversubscribed=*/false)),
      log, kDryRunLimit, options_.grace, stop_);
  if (!end.ok()) return std::nullopt;  // the run will report why
  if (end->ended_by_signal != 0) {
    stop_signal_ = end->ended_by_signal;
    return absl::CancelledError("interrupted");
  }
  std::stringstream text;
  text << std::ifstream(log).rdbuf();
  std::optional<LaunchPlan> plan;
  if (end->exit_code == 0) plan = ParseLaunchPlan(text.str());
  if (plan) HVDLITE_RETURN_IF_ERROR(CheckHosts(configuration, plan->hosts));
  if (plan && plan->threads == 0) plan.reset();
  plans_[Key(configuration)] = plan;
  return plan;
}

absl::StatusOr<Sample> SweepRunner::RunOnce(const Configuration& configuration,
                                            int repeat) {
  const Spec& spec = options_.spec;
  if (IsSearchedHere(configuration, options_)) {
    HVDLITE_RETURN_IF_ERROR(
        support::PathOfProgram(
            ProgramArguments(spec, configuration, {}).front(),
            options_.environment)
            .status());
  }
  const fs::path root = fs::absolute(results_.directory());
  const fs::path directory =
      fs::path(DirectoryOf(configuration)) / absl::StrCat(repeat + 1);
  std::error_code error;
  fs::remove_all(root / directory, error);  // files of an interrupted run
  HVDLITE_RETURN_IF_ERROR(MakeDirectory(root / directory));

  HVDLITE_ASSIGN_OR_RETURN(const std::optional<LaunchPlan> plan,
                           PlanFor(configuration));
  const Processors node = ProcessorsOf(spec, options_.machine);
  const int asked = ThreadsBySettings(configuration, options_.environment);
  const int threads = plan ? plan->threads : asked;
  const bool own_threads =
      std::count(configuration.unset.begin(), configuration.unset.end(),
                 "OMP_NUM_THREADS") > 0;
  const bool oversubscribed = IsOversubscribed(configuration.ranks_per_node,
                                               threads, asked, plan, node);
  Sample sample = {
      .configuration = Key(configuration),
      .repeat = repeat,
      .nodes = configuration.nodes,
      .ranks = configuration.ranks(),
      .threads = configuration.threads,
      .mapping = configuration.mapping,
      .setting = configuration.setting,
      .oversubscribed = oversubscribed,
      .threads_used = own_threads ? 0 : threads,
      .host = options_.machine.host,
      .cores = node.cores,
      .machine = machine_,
      .start_time = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(),
                                     absl::UTCTimeZone()),
      .command = {},
      .environment = support::RelevantVariables(options_.environment),
      .items_per_second = std::nullopt,
      .failure = "",
      .report = "",
      .trace = "",
      .log = (directory / "output.log").string()};
  const RunFiles files = FilesIn((root / directory).string(), spec, repeat);
  const Command command =
      BuildCommand(spec, configuration, files, options_.launcher,
                   plan ? plan->oversubscribed : oversubscribed);
  sample.command = command.arguments;
  for (const auto& [name, value] : command.environment) {
    sample.environment[name] = value;
  }
  for (const auto& [name, value] : FilledIn(configuration, files).environment) {
    sample.environment[name] = value;
  }

  const support::CpuSeconds before = options_.cpu_seconds();
  HVDLITE_ASSIGN_OR_RETURN(
      const support::ChildEnd end,
      RunLogged(command, files.log, absl::Seconds(limit_.seconds),
                options_.grace, stop_));
  const support::CpuSeconds after = options_.cpu_seconds();
  if (end.ended_by_signal != 0) {
    stop_signal_ = end.ended_by_signal;
    return absl::CancelledError("interrupted");
  }
  sample.exit_code = end.exit_code;
  sample.seconds = absl::ToDoubleSeconds(end.duration);
  if (after.machine > 0 && IsBelowThisProcess(configuration, options_)) {
    sample.machine["other programs"] = support::DescribeOtherPrograms(
        (after.machine - before.machine - (after.children - before.children)) /
            sample.seconds,
        static_cast<int>(support::OnlineCpus().size()));
  }
  sample.failure = FailureOf(end, limit_, files.log);
  if (end.timed_out && limit_.is_all_there_is) {
    return absl::DeadlineExceededError(
        absl::StrCat(sample.failure, "; see ", sample.log));
  }
  if (fs::exists(files.report)) {
    sample.report = (directory / "report.json").string();
  }
  if (!files.trace.empty()) {
    sample.trace =
        TraceIn(root, (directory / fs::path(files.trace).filename()).string());
  }
  if (!sample.failure.empty()) return sample;
  const absl::StatusOr<ProgramReport> report =
      ReadProgramReport(files.report, spec.items(), spec.warmup_intervals());
  if (!report.ok()) {
    sample.failure = std::string(report.status().message());
    return sample;
  }
  sample.items_per_second = report->items_per_second;
  if (!report->machine.empty()) {
    const std::map<std::string, std::string> known =
        std::exchange(sample.machine, report->machine);
    // A program on this host may have reported only some properties.
    const auto host = sample.machine.find("host");
    if (host != sample.machine.end() && host->second == known.at("host")) {
      sample.machine.insert(known.begin(), known.end());
    }
  }
  if (report->threads_per_rank > 0) {
    sample.threads_used = report->threads_per_rank;
    sample.oversubscribed = IsOversubscribed(
        configuration.ranks_per_node, sample.threads_used, asked, plan, node);
  }
  return sample;
}

std::vector<Sample> SamplesOf(const std::vector<Sample>& samples,
                              const std::string& configuration) {
  std::map<int, Sample> by_repeat;
  for (const Sample& sample : samples) {
    if (sample.configuration == configuration) {
      by_repeat.insert_or_assign(sample.repeat, sample);
    }
  }
  std::vector<Sample> found;
  for (auto& [repeat, sample] : by_repeat) found.push_back(std::move(sample));
  return found;
}

}  // namespace hvdlite::scaling_sweep
