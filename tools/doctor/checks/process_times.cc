#include "tools/doctor/checks/process_times.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvdlite::doctor {

std::optional<ProcessTime> ParseProcessStat(absl::string_view line) {
  // "12 (a name) S ...": the name may have spaces and parentheses. Fields are
  // counted from 3 behind it; see proc(5).
  const size_t open = line.find('(');
  const size_t close = line.rfind(')');
  if (open == absl::string_view::npos || close == absl::string_view::npos ||
      close < open) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> fields =
      absl::StrSplit(line.substr(close + 1), ' ', absl::SkipEmpty());
  constexpr size_t kFirst = 3;
  constexpr size_t kUser = 14;
  constexpr size_t kSystem = 15;
  constexpr size_t kThreads = 20;
  constexpr size_t kProcessor = 39;
  if (fields.size() <= kProcessor - kFirst) return std::nullopt;
  int64_t user = 0;
  int64_t system = 0;
  ProcessTime time = {.name =
                          std::string(line.substr(open + 1, close - open - 1))};
  if (!absl::SimpleAtoi(fields[kUser - kFirst], &user) ||
      !absl::SimpleAtoi(fields[kSystem - kFirst], &system) ||
      !absl::SimpleAtoi(fields[kThreads - kFirst], &time.threads) ||
      !absl::SimpleAtoi(fields[kProcessor - kFirst], &time.cpu)) {
    return std::nullopt;
  }
  time.ticks = user + system;
  return time;
}

ProcessTimes ReadProcessTimes(const SystemFiles& files) {
  ProcessTimes times;
  for (const std::string& name : files.Names("/proc")) {
    int id = 0;
    if (!absl::SimpleAtoi(name, &id)) continue;
    const std::optional<std::string> line =
        files.Line(absl::StrCat("/proc/", name, "/stat"));
    if (!line.has_value()) continue;  // it has ended
    std::optional<ProcessTime> time = ParseProcessStat(*line);
    if (time.has_value()) times[id] = *std::move(time);
  }
  return times;
}

std::string CompetitorOn(int cpu, const ProcessTimes& before,
                         const ProcessTimes& after, int own) {
  int64_t most[2] = {0, 0};  // ran last on `cpu`; may have had threads there
  std::string name[2];
  const auto self = after.find(own);
  for (const auto& [id, now] : after) {
    const auto then = before.find(id);
    const int64_t ticks =
        now.ticks - (then == before.end() ? 0 : then->second.ticks);
    const bool there = now.cpu == cpu;
    const bool fellow = self != after.end() && now.name == self->second.name;
    if (id == own || (!there && (now.threads == 1 || fellow))) continue;
    const int kind = there ? 0 : 1;
    if (ticks <= most[kind]) continue;
    most[kind] = ticks;
    name[kind] = absl::StrCat(now.name, " (pid ", id, ")");
  }
  return most[0] > 0 ? name[0] : name[1];
}

}  // namespace hvdlite::doctor
