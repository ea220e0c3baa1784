#include "timeline/record/resource_sampler.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"

namespace hvdlite::timeline {
namespace {

// The prefix of the names of hvdlite's threads, and the background thread's
// name.
constexpr absl::string_view kOwnThreads = "hvdlite";
constexpr absl::string_view kProgressThread = "hvdlite\n";

// Returns the content of a small file; empty if it does not exist.
std::string ReadSmallFile(const std::string& path) {
  const base::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return "";
  std::array<char, 4096> text;
  const ssize_t size = read(file.get(), text.data(), text.size());
  return std::string(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
}

// Returns nullopt if the thread has ended, or if the kernel does not count.
std::optional<ThreadUse> ReadSchedstat(const std::string& directory) {
  const std::string text = ReadSmallFile(absl::StrCat(directory, "/schedstat"));
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  ThreadUse use;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[0], &use.cpu_ns) ||
      !absl::SimpleAtoi(fields[1], &use.delay_ns)) {
    return std::nullopt;
  }
  return use;
}

int64_t ReadInvoluntarySwitches(const std::string& directory) {
  constexpr absl::string_view kKey = "nonvoluntary_ctxt_switches:";
  const std::string text = ReadSmallFile(absl::StrCat(directory, "/status"));
  const size_t key = text.find(kKey.data(), 0, kKey.size());
  if (key == std::string::npos) return 0;
  absl::string_view rest(text);
  rest.remove_prefix(key + kKey.size());
  int64_t switches = 0;
  (void)absl::SimpleAtoi(rest.substr(0, rest.find('\n')), &switches);
  return switches;
}

ThreadUse Less(const ThreadUse& now, const ThreadUse& before) {
  return {.cpu_ns = now.cpu_ns - before.cpu_ns,
          .delay_ns = now.delay_ns - before.delay_ns,
          .involuntary = now.involuntary - before.involuntary};
}

TraceEvent Counter(std::string name, int64_t now_ns,
                   std::vector<TraceArg> values) {
  return {.name = std::move(name),
          .start_ns = now_ns,
          .args = std::move(values),
          .kind = TraceEvent::Kind::kCounter};
}

TraceEvent ThreadCounter(std::string name, int64_t now_ns, const ThreadUse& use,
                         const char* last, int64_t value) {
  return Counter(std::move(name), now_ns,
                 {{"cpu_us", use.cpu_ns / 1000},
                  {"delay_us", use.delay_ns / 1000},
                  {last, value}});
}

}  // namespace

ResourceSampler::ResourceSampler(pid_t main_thread, std::string directory)
    : main_thread_(main_thread), directory_(std::move(directory)) {}

std::vector<TraceEvent> ResourceSampler::Sample(int64_t now_ns) {
  std::vector<TraceEvent> counters;
  const int64_t interval_ns = now_ns - std::exchange(sampled_ns_, now_ns);
  std::optional<ThreadUse> progress;
  std::optional<ThreadUse> main;
  ThreadUse compute;
  int64_t busy_threads = 0;
  std::map<pid_t, Thread> threads;
  std::error_code error;
  for (std::filesystem::directory_iterator task(directory_ + "/task", error),
       end;
       !error && task != end; task.increment(error)) {
    pid_t id = 0;
    const std::string directory = task->path().string();
    if (!absl::SimpleAtoi(task->path().filename().string(), &id)) continue;
    std::optional<ThreadUse> use = ReadSchedstat(directory);
    if (!use.has_value()) continue;
    const auto known = threads_.find(id);
    Thread thread;
    if (known != threads_.end()) {
      thread = known->second;
    } else {
      const std::string name = ReadSmallFile(absl::StrCat(directory, "/comm"));
      thread.is_own = id != main_thread_ && absl::StartsWith(name, kOwnThreads);
      thread.is_progress = thread.is_own && name == kProgressThread;
    }
    if (thread.is_progress || id == main_thread_) {
      use->involuntary = ReadInvoluntarySwitches(directory);
    }
    const ThreadUse since = Less(*use, std::exchange(thread.last, *use));
    if (thread.is_progress) progress = since;
    if (id == main_thread_) main = since;
    if (!thread.is_own) {
      compute.cpu_ns += since.cpu_ns;
      compute.delay_ns += since.delay_ns;
      busy_threads += since.cpu_ns * 100 > interval_ns ? 1 : 0;
    }
    threads.emplace(id, thread);
  }
  threads_ = std::move(threads);
  if (progress) {
    counters.push_back(ThreadCounter("PROGRESS_THREAD", now_ns, *progress,
                                     "involuntary", progress->involuntary));
  }
  if (main) {
    counters.push_back(ThreadCounter("MAIN_THREAD", now_ns, *main,
                                     "involuntary", main->involuntary));
    counters.push_back(ThreadCounter("COMPUTE_THREADS", now_ns, compute,
                                     "threads", busy_threads));
  }

  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const int64_t system_cpu_us =
      usage.ru_stime.tv_sec * int64_t{1'000'000} + usage.ru_stime.tv_usec;
  const std::string text = ReadSmallFile(directory_ + "/statm");
  const std::vector<absl::string_view> pages = absl::StrSplit(text, ' ');
  int64_t resident = 0;
  if (pages.size() > 1) (void)absl::SimpleAtoi(pages[1], &resident);
  counters.push_back(Counter(
      "MEMORY", now_ns,
      {{"rss_bytes", resident * sysconf(_SC_PAGESIZE)},
       {"major_faults",
        usage.ru_majflt - std::exchange(major_faults_, usage.ru_majflt)},
       {"minor_faults",
        usage.ru_minflt - std::exchange(minor_faults_, usage.ru_minflt)},
       {"system_cpu_us",
        system_cpu_us - std::exchange(system_cpu_us_, system_cpu_us)}}));
  return counters;
}

}  // namespace hvdlite::timeline
