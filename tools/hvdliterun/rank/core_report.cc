#include "tools/hvdliterun/rank/core_report.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/processor.h"
#include "tools/hvdliterun/rank/json_line.h"

namespace hvdlite::support {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessUse, name, id, share)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CoreUse, cpus, busy, iowait, stolen,
                                   processes)

}  // namespace hvdlite::support

namespace hvdlite::launch {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BoundRanks, computing, coordinating)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CoreReport, use, ranks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostCores, host, seconds, cores)

namespace {

constexpr double kIdle = 0.5;  // busy for less than this share
constexpr size_t kCoreLineBytes = 3900;
constexpr size_t kMostProcesses = 4;  // per core
// Reports cover the steps of 5 s and arrive after them; looks are 1 s apart.
constexpr size_t kLooksBeforeSteps = 12;

bool IsShare(double number) { return number >= 0 && number <= 1; }

std::string RanksText(const BoundRanks& ranks) {
  std::vector<std::string> parts;
  if (!ranks.computing.empty()) {
    parts.push_back(absl::StrCat(
        ranks.computing.size() == 1 ? "local rank " : "local ranks ",
        support::FormatCpuList(ranks.computing)));
  }
  if (!ranks.coordinating.empty()) {
    parts.push_back(absl::StrCat("coordinator of ",
                                 support::FormatCpuList(ranks.coordinating)));
  }
  return parts.empty() ? "no rank" : absl::StrJoin(parts, ", ");
}

// "CPU 3"; "CPUs 3,21" for a core with two hardware threads.
std::string CoreName(const CoreReport& core) {
  return absl::StrCat(core.use.cpus.size() == 1 ? "CPU " : "CPUs ",
                      support::FormatCpuList(core.use.cpus));
}

struct Remarks {
  std::vector<int> idle;  // CPUs
  size_t idle_cores = 0;
  std::vector<std::string> shared;
  size_t unused = 0;  // cores without a rank

  bool any() const { return idle_cores > 0 || !shared.empty(); }
};

Remarks RemarksOf(const HostCores& host) {
  Remarks remarks;
  for (const CoreReport& core : host.cores) {
    const std::vector<int>& cpus = core.use.cpus;
    if (core.ranks == BoundRanks()) ++remarks.unused;
    if (!core.ranks.computing.empty() && core.use.busy < kIdle) {
      remarks.idle.insert(remarks.idle.end(), cpus.begin(), cpus.end());
      ++remarks.idle_cores;
    }
    if (core.use.processes.size() > 1) {
      remarks.shared.push_back(absl::StrCat(
          CoreName(core), ": ",
          absl::StrJoin(core.use.processes, ", ",
                        [](std::string* out, const support::ProcessUse& use) {
                          absl::StrAppend(out, support::ProcessText(use));
                        })));
    }
  }
  return remarks;
}

void AppendHost(const HostCores& host, const Remarks& remarks,
                std::string& text) {
  std::vector<support::CoreUse> uses;
  std::vector<std::string> labels;
  for (const CoreReport& core : host.cores) {
    uses.push_back(core.use);
    labels.push_back(RanksText(core.ranks));
  }
  absl::StrAppend(&text, support::CoreBars(uses, labels));
  if (remarks.idle_cores > 0) {
    absl::StrAppendFormat(
        &text,
        "  idle more than half of the time although a rank computes there: %d "
        "of %d cores (CPUs %s)\n",
        remarks.idle_cores, host.cores.size(),
        support::FormatCpuList(remarks.idle));
  }
  for (const std::string& shared : remarks.shared) {
    absl::StrAppend(&text, "  shared: ", shared, "\n");
  }
  if (remarks.unused > 0) {
    absl::StrAppendFormat(&text, "  no rank is bound to %d of %d cores\n",
                          remarks.unused, host.cores.size());
  }
}

}  // namespace

std::vector<std::string> EncodeCores(const HostCores& cores) {
  std::string line = JsonLine(cores);
  if (line.size() <= kCoreLineBytes || cores.cores.size() <= 1) return {line};
  std::vector<std::string> lines;
  const auto middle =
      cores.cores.begin() + static_cast<long>(cores.cores.size() / 2);
  for (const auto& [begin, end] : {std::pair(cores.cores.begin(), middle),
                                   std::pair(middle, cores.cores.end())}) {
    for (std::string& half : EncodeCores({.host = cores.host,
                             .seconds = cores.seconds,
                             .cores = {begin, end}})) {
      lines.push_back(std::move(half));
    }
  }
  return lines;
}

std::optional<HostCores> DecodeCores(absl::string_view line) {
  std::optional<HostCores> cores = FromJsonLine<HostCores>(line);
  if (!cores.has_value() ||
      !absl::c_all_of(cores->cores, [](const CoreReport& core) {
        return IsShare(core.use.busy) && IsShare(core.use.iowait) &&
               IsShare(core.use.stolen);
      })) {
    return std::nullopt;
  }
  return cores;
}

TrainingCores::TrainingCores(Machine machine,
                             const std::vector<RankPlan>& plans, int first_rank,
                             support::SystemFiles files)
    : machine_(std::move(machine)),
      bound_(machine_.cores.size()),
      watch_(std::move(files)) {
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    const int number = first_rank + static_cast<int>(rank);
    for (const size_t core : plans[rank].compute_cores) {
      bound_[core].computing.push_back(number);
    }
    if (plans[rank].comm_core.has_value()) {
      bound_[*plans[rank].comm_core].coordinating.push_back(number);
    }
  }
}

void TrainingCores::Look(int64_t now_ns) {
  recent_.push_back(watch_.Look(now_ns));
  if (recent_.size() > kLooksBeforeSteps) recent_.pop_front();
}

void TrainingCores::SawSteps(int64_t start_ns) {
  if (recent_.empty()) return;
  if (!begin_.has_value()) {
    begin_ = recent_.front();
    for (const support::CoreLook& look : recent_) {
      if (look.time_ns <= start_ns) begin_ = look;
    }
    first_report_ = recent_.back();
  }
  last_report_ = recent_.back();
}

std::vector<std::string> TrainingCores::Report(const std::string& host) const {
  if (!begin_.has_value()) return {};
  const bool settled = last_report_->time_ns - first_report_->time_ns >
                       first_report_->time_ns - begin_->time_ns;
  const support::CoreLook& first = settled ? *first_report_ : *begin_;
  const int64_t passed_ns = last_report_->time_ns - first.time_ns;
  if (passed_ns <= 0) return {};
  std::vector<std::vector<int>> cores;
  for (const MachineCore& core : machine_.cores) cores.push_back(core.cpus);
  std::vector<support::CoreUse> uses =
      UseBetween(watch_, first, *last_report_, cores);
  HostCores report = {.host = host,
                      .seconds = 1e-9 * static_cast<double>(passed_ns)};
  for (size_t i = 0; i < uses.size(); ++i) {
    auto& processes = uses[i].processes;
    processes.resize(std::min(processes.size(), kMostProcesses));
    report.cores.push_back({.use = std::move(uses[i]), .ranks = bound_[i]});
  }
  return EncodeCores(report);
}

std::string DescribeCores(const std::vector<HostCores>& hosts) {
  std::string text;
  for (const HostCores& host : hosts) {
    const Remarks remarks = RemarksOf(host);
    const bool bars = remarks.any() || &host == &hosts.front();
    absl::StrAppendFormat(&text, "cores of %s in %.0f s of training", host.host,
                          host.seconds);
    absl::StrAppend(&text,
                    bars ? absl::StrCat(" (", support::kCoreBarLegend, "):\n")
                         : ": cores with ranks are busy and not shared\n");
    if (bars) AppendHost(host, remarks, text);
  }
  return text;
}

}  // namespace hvdlite::launch
