#include "support/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "support/processor.h"

namespace hvdlite::support {
namespace {

// How many of `cpus` threads of this process may use. OpenMP may have bound the
// calling thread alone to its place. 0: unknown.
int CountOfThisProcess(const std::vector<int>& cpus, const SystemFiles& files) {
  const std::string tasks = "/proc/self/task/";
  std::set<int> usable;
  for (const std::string& task : files.Names(tasks)) {
    const absl::StatusOr<std::vector<int>> allowed =
        ParseCpuList(ValueOf(files.Text(tasks + task + "/status").value_or(""),
                             "Cpus_allowed_list"));
    if (allowed.ok()) usable.insert(allowed->begin(), allowed->end());
  }
  return static_cast<int>(std::count_if(
      cpus.begin(), cpus.end(), [&](int cpu) { return usable.contains(cpu); }));
}

int CountSockets(const std::vector<int>& cpus, const SystemFiles& files) {
  std::set<std::string> sockets;
  for (const int cpu : cpus) {
    const auto socket = files.Line(absl::StrCat(
        "/sys/devices/system/cpu/cpu", cpu, "/topology/physical_package_id"));
    if (socket.has_value()) sockets.insert(*socket);
  }
  return std::max(1, static_cast<int>(sockets.size()));
}

int CountNumaNodes(const SystemFiles& files) {
  const std::string directory = "/sys/devices/system/node/";
  int nodes = 0;
  for (const std::string& name : files.Names(directory)) {
    // A node without CPUs has only memory.
    if (!files.Line(directory + name + "/cpulist").value_or("").empty())
      ++nodes;
  }
  return std::max(1, nodes);
}

int Size(const std::vector<int>& numbers) {
  return static_cast<int>(numbers.size());
}

double SecondsOf(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

std::string ProcessorIn(const std::string& cpuinfo,
                        const std::string& architecture) {
  const std::string model = ValueOf(cpuinfo, "model name");
  if (!model.empty()) return model;
  const bool is_a64fx = ValueOf(cpuinfo, "CPU implementer") == "0x46" &&
                        ValueOf(cpuinfo, "CPU part") == "0x001";
  return is_a64fx ? "A64FX" : architecture;
}

}  // namespace

std::optional<std::string> SystemFiles::Text(const std::string& path) const {
  absl::StatusOr<std::string> text = base::ReadFile(root_ + path);
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

std::optional<std::string> SystemFiles::Line(const std::string& path) const {
  const std::optional<std::string> text = Text(path);
  if (!text.has_value()) return std::nullopt;
  return std::string(
      absl::StripAsciiWhitespace(text->substr(0, text->find('\n'))));
}

std::optional<double> SystemFiles::Number(const std::string& path) const {
  const std::optional<std::string> line = Line(path);
  double number = 0;
  if (!line.has_value() || !absl::SimpleAtod(*line, &number)) {
    return std::nullopt;
  }
  return number;
}

std::vector<std::string> SystemFiles::Names(
    const std::string& directory) const {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(root_ + directory, error), end;
       !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ValueOf(const std::string& text, const std::string& key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::StripAsciiWhitespace(parts.first) == key) {
      return std::string(absl::StripAsciiWhitespace(parts.second));
    }
  }
  return "";
}

std::string BracketedChoice(const std::string& text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']', open);
  if (open == std::string::npos || close == std::string::npos) return text;
  return text.substr(open + 1, close - open - 1);
}

std::vector<int> OnlineCpus(const SystemFiles& files) {
  const absl::StatusOr<std::vector<int>> online =
      ParseCpuList(files.Line("/sys/devices/system/cpu/online").value_or(""));
  // Without this file the allowed CPUs are used.
  return online.ok() && !online->empty() ? *online : AllowedCpus();
}

MachineFacts ThisMachine(const SystemFiles& files) {
  utsname system = {};
  uname(&system);
  const std::string cpuinfo = files.Text("/proc/cpuinfo").value_or("");
  const std::vector<int> cpus = AllowedCpus();
  return {.host = system.nodename,
          .processor = ProcessorIn(cpuinfo, system.machine),
          .cores = std::max(1, Size(CoresOf(cpus, files))),
          .cpus = std::max(1, Size(cpus)),
          .sockets = CountSockets(cpus, files),
          .numa_nodes = CountNumaNodes(files),
          .cpu_flags = CpuFlags(cpuinfo)};
}

int CoreOf(int cpu, const SystemFiles& files) {
  const absl::StatusOr<std::vector<int>> threads =
      ParseCpuList(files
                       .Line(absl::StrCat("/sys/devices/system/cpu/cpu", cpu,
                                          "/topology/thread_siblings_list"))
                       .value_or(""));
  return threads.ok() && !threads->empty() ? threads->front() : cpu;
}

std::vector<int> CoresOf(const std::vector<int>& cpus,
                         const SystemFiles& files) {
  std::set<int> cores;
  for (const int cpu : cpus) cores.insert(CoreOf(cpu, files));
  return {cores.begin(), cores.end()};
}

std::map<std::string, std::string> RelevantVariables(
    const base::Environment& environment) {
  constexpr absl::string_view kPrefixes[] = {
      "HVDLITE_",       "OMP_",       "GOMP_",           "KMP_",
      "MKL_",           "DNNL_",      "ONEDNN_",         "OPENBLAS_",
      "GOTO_",          "BLIS_",      "MALLOC_",         "TCMALLOC_",
      "GLIBC_TUNABLES", "LD_PRELOAD", "LD_LIBRARY_PATH", "UCX_",
      "OMPI_MCA_",      "MPICH_",     "MPIR_CVAR_",      "FI_",
      "I_MPI_",         "XOS_MMM_",   "ATEN_",           "TORCH_"};
  std::map<std::string, std::string> relevant;
  for (const std::string& name : environment.names()) {
    const bool matters = std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                                     [&](absl::string_view prefix) {
                                       return absl::StartsWith(name, prefix);
                                     });
    if (matters) relevant[name] = environment.get(name).value_or("");
  }
  return relevant;
}

std::vector<std::pair<std::string, std::string>> DescribeMachine(
    const SystemFiles& files) {
  utsname system = {};
  uname(&system);
  const MachineFacts facts = ThisMachine(files);
  const std::vector<int> cpus = OnlineCpus(files);
  const int all = Size(cpus);
  const int own = CountOfThisProcess(cpus, files);
  const auto count = [](int number, absl::string_view what) {
    return absl::StrCat(number, " ", what, number == 1 ? "" : "s");
  };
  std::string cores =
      absl::StrCat(count(Size(CoresOf(cpus, files)), "core"), " with ",
                   count(all, "hardware thread"), ", ",
                   count(CountSockets(cpus, files), "socket"), ", ",
                   count(facts.numa_nodes, "NUMA node"));
  if (own > 0 && own < all) {
    absl::StrAppend(&cores, "; this process may use ",
                    count(own, "hardware thread"));
  }
  const std::string memory =
      ValueOf(files.Text("/proc/meminfo").value_or(""), "MemTotal");
  double kibibytes = 0;
  const bool known =
      absl::SimpleAtod(memory.substr(0, memory.find(' ')), &kibibytes);
  return {{"host", facts.host},
          {"processor", facts.processor},
          {"cores", cores},
          {"memory", known ? absl::StrFormat("%.1f GiB", kibibytes / (1 << 20))
                           : "unknown"},
          {"kernel", absl::StrCat(system.sysname, " ", system.release, ", ",
                                  system.machine)}};
}

CpuSeconds CpuSecondsNow(const SystemFiles& files) {
  rusage children = {};
  getrusage(RUSAGE_CHILDREN, &children);
  CpuSeconds seconds = {.process = SecondsOf(CLOCK_PROCESS_CPUTIME_ID),
                        .children = absl::ToDoubleSeconds(
                            absl::DurationFromTimeval(children.ru_utime) +
                            absl::DurationFromTimeval(children.ru_stime))};
  const std::vector<std::string> words = absl::StrSplit(
      files.Line("/proc/stat").value_or(""), ' ', absl::SkipWhitespace());
  // cpu user nice system idle iowait irq softirq steal: man 5 proc_stat.
  for (const size_t word : {1, 2, 3, 6, 7, 8}) {
    double ticks = 0;
    if (word < words.size() && absl::SimpleAtod(words[word], &ticks)) {
      seconds.machine += ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
    }
  }
  return seconds;
}

std::string DescribeOtherPrograms(double others_cpus, int cpus) {
  return absl::StrFormat("%.2f of %d CPUs: %s", std::max(0.0, others_cpus),
                         cpus, others_cpus < 0.05 * cpus ? "quiet" : "busy");
}

double WallSeconds() { return SecondsOf(CLOCK_MONOTONIC); }

double ThreadCpuSeconds() { return SecondsOf(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace hvdlite::support
