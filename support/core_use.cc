#include "support/core_use.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/processor.h"

namespace hvdlite::support {
namespace {

constexpr double kWorthTelling = 0.05;  // fraction of a core's time
constexpr int kBarWidth = 40;

double TicksPerSecond() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

double Sum(const CpuTimes& times) {
  return times.busy + times.iowait + times.stolen + times.idle;
}

// Shares of the time between the two; zeros if no time passed.
CpuTimes SharesBetween(const CpuTimes& first, const CpuTimes& last) {
  const double passed = Sum(last) - Sum(first);
  if (passed <= 0) return {};
  // The kernel's iowait counter may go backwards a little.
  const auto share = [&](double before, double after) {
    return std::clamp((after - before) / passed, 0.0, 1.0);
  };
  return {.busy = share(first.busy, last.busy),
          .iowait = share(first.iowait, last.iowait),
          .stolen = share(first.stolen, last.stolen),
          .idle = share(first.idle, last.idle)};
}

// `from`[key], or zeros.
template <typename Map>
typename Map::mapped_type At(const Map& from,
                             const typename Map::key_type& key) {
  const auto found = from.find(key);
  return found == from.end() ? typename Map::mapped_type() : found->second;
}

// Reads all directories below `directory` whose names are numbers.
ProcessTimes ReadTimesIn(const SystemFiles& files,
                         const std::string& directory) {
  ProcessTimes times;
  for (const std::string& name : files.Names(directory)) {
    int id = 0;
    if (!absl::SimpleAtoi(name, &id)) continue;
    const std::optional<std::string> line =
        files.Line(absl::StrCat(directory, "/", name, "/stat"));
    if (!line.has_value()) continue;  // the process has ended
    std::optional<ProcessTime> time = ParseProcessStat(*line);
    if (time.has_value()) times[id] = *std::move(time);
  }
  return times;
}

std::string Bar(const CoreUse& core) {
  std::string bar;
  double sum = 0;
  const auto extend = [&](double share, char sign) {
    sum += share;
    bar.resize(
        std::max(bar.size(), static_cast<size_t>(std::lround(sum * kBarWidth))),
        sign);
  };
  extend(core.busy, '#');
  extend(core.iowait, 'w');
  extend(core.stolen, 's');
  bar.resize(kBarWidth, '.');
  return bar;
}

}  // namespace

std::map<int, CpuTimes> ReadCpuTimes(const SystemFiles& files) {
  std::map<int, CpuTimes> cpus;
  const std::string text = files.Text("/proc/stat").value_or("");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    // cpu0 user nice system idle iowait irq softirq steal
    std::vector<absl::string_view> fields =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    int cpu = 0;
    double ticks[8];
    if (fields.size() < 9 || !absl::ConsumePrefix(&fields[0], "cpu") ||
        !absl::SimpleAtoi(fields[0], &cpu) || cpu < 0) {
      continue;
    }
    const bool all = std::equal(
        std::begin(ticks), std::end(ticks), fields.begin() + 1,
        [](double& number, absl::string_view field) {
          return absl::SimpleAtod(field, &number) && std::isfinite(number);
        });
    if (!all) continue;
    const double second = TicksPerSecond();
    cpus[cpu] = {
        .busy = (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / second,
        .iowait = ticks[4] / second,
        .stolen = ticks[7] / second,
        .idle = ticks[3] / second};
  }
  return cpus;
}

std::optional<ProcessTime> ParseProcessStat(absl::string_view line) {
  // "12 (a name) S ...": the name may contain spaces and parentheses. The field
  // after it is number 3 of proc(5).
  const size_t open = line.find('(');
  const size_t close = line.rfind(')');
  if (open == absl::string_view::npos || close == absl::string_view::npos ||
      close < open) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> fields =
      absl::StrSplit(line.substr(close + 1), ' ', absl::SkipEmpty());
  constexpr size_t kFirst = 3;
  constexpr size_t kParent = 4;
  constexpr size_t kGroup = 5;
  constexpr size_t kUser = 14;
  constexpr size_t kSystem = 15;
  constexpr size_t kThreads = 20;
  constexpr size_t kStart = 22;
  constexpr size_t kProcessor = 39;
  constexpr int64_t kMostTicks = int64_t{1} << 60;
  if (fields.size() <= kProcessor - kFirst) return std::nullopt;
  int64_t user = 0;
  int64_t system = 0;
  ProcessTime time = {.name =
                          std::string(line.substr(open + 1, close - open - 1))};
  if (!absl::SimpleAtoi(fields[kParent - kFirst], &time.parent) ||
      !absl::SimpleAtoi(fields[kGroup - kFirst], &time.group) ||
      !absl::SimpleAtoi(fields[kStart - kFirst], &time.start_ticks) ||
      !absl::SimpleAtoi(fields[kUser - kFirst], &user) ||
      !absl::SimpleAtoi(fields[kSystem - kFirst], &system) ||
      !absl::SimpleAtoi(fields[kThreads - kFirst], &time.threads) ||
      !absl::SimpleAtoi(fields[kProcessor - kFirst], &time.cpu) || user < 0 ||
      system < 0 || user > kMostTicks || system > kMostTicks) {
    return std::nullopt;
  }
  time.ticks = user + system;
  return time;
}

ProcessTimes ReadProcessTimes(const SystemFiles& files) {
  return ReadTimesIn(files, "/proc");
}

CoreLook CoreWatch::Look(int64_t now_ns) {
  const bool begins = !std::exchange(has_looked_, true);
  std::map<pid_t, Process> processes;
  for (auto& [id, time] : ReadProcessTimes(files_)) {
    Process& process = processes[id];
    if (const auto before = processes_.find(id); before != processes_.end()) {
      process = before->second;
    }
    // Most processes sleep; their threads need not be read.
    if (!begins && time.ticks == process.ticks) continue;
    std::map<int, int64_t> threads;
    for (const auto& [thread, worked] :
         ReadTimesIn(files_, absl::StrCat("/proc/", id, "/task"))) {
      threads[thread] = worked.ticks;
      const int64_t ticks = worked.ticks - At(process.threads, thread);
      if (begins || ticks <= 0) continue;
      seconds_[{worked.cpu, id}] +=
          static_cast<double>(ticks) / TicksPerSecond();
    }
    process = {.ticks = time.ticks, .threads = std::move(threads)};
    names_[id] = std::move(time.name);
  }
  processes_ = std::move(processes);
  // Forgets the many short processes.
  std::erase_if(seconds_, [&](const auto& entry) {
    return entry.second < 1 && !processes_.contains(entry.first.second);
  });
  return {.time_ns = now_ns, .cpus = ReadCpuTimes(files_), .seconds = seconds_};
}

std::string CoreWatch::NameOf(pid_t process) const {
  return At(names_, process);
}

std::vector<CoreUse> UseBetween(const CoreWatch& watch, const CoreLook& first,
                                const CoreLook& last,
                                const std::vector<std::vector<int>>& cores) {
  const double passed =
      1e-9 * static_cast<double>(last.time_ns - first.time_ns);
  std::vector<CoreUse> uses;
  for (const std::vector<int>& cpus : cores) {
    CoreUse use = {.cpus = cpus};
    std::map<pid_t, double> seconds;
    for (const int cpu : cpus) {
      const CpuTimes shares =
          SharesBetween(At(first.cpus, cpu), At(last.cpus, cpu));
      if (cpu == cpus.front() || shares.busy > use.busy) {
        use.busy = shares.busy;
        use.iowait = shares.iowait;
        use.stolen = shares.stolen;
      }
      for (auto it = last.seconds.lower_bound({cpu, 0});
           it != last.seconds.end() && it->first.first == cpu; ++it) {
        seconds[it->first.second] += it->second - At(first.seconds, it->first);
      }
    }
    for (const auto& [id, worked] : seconds) {
      if (passed <= 0 || worked < kWorthTelling * passed) continue;
      use.processes.push_back({.name = watch.NameOf(id),
                               .id = id,
                               .share = std::min(worked / passed, 1.0)});
    }
    std::stable_sort(use.processes.begin(), use.processes.end(),
                     [](const ProcessUse& a, const ProcessUse& b) {
                       return a.share > b.share;
                     });
    uses.push_back(std::move(use));
  }
  return uses;
}

std::string ProcessText(const ProcessUse& process) {
  return absl::StrFormat("%s (pid %d) %.0f %%",
                         process.name.empty() ? "a process" : process.name,
                         process.id, 100 * process.share);
}

std::string CoreBars(const std::vector<CoreUse>& cores,
                     const std::vector<std::string>& labels) {
  size_t widest = 0;
  for (const CoreUse& core : cores) {
    widest = std::max(widest, FormatCpuList(core.cpus).size());
  }
  std::string text;
  for (size_t i = 0; i < cores.size(); ++i) {
    absl::StrAppendFormat(&text, "  CPU %-*s %s %3.0f %%  %s\n",
                          static_cast<int>(widest),
                          FormatCpuList(cores[i].cpus), Bar(cores[i]),
                          100 * cores[i].busy, labels[i]);
  }
  return text;
}

}  // namespace hvdlite::support
