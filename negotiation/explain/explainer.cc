#include "negotiation/explain/explainer.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/environment.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "negotiation/explain/frame_names.h"

namespace hvdlite::internal {
namespace {

using negotiation::Explanation;
using negotiation::ProcessSample;

constexpr int kMaxFrames = 32;
constexpr int kOwnFrames = 4;  // of the handler, at most
constexpr size_t kMaxStacksBytes = 4000;
// How long a thread may take to enter its handler, since it may have no core;
// and as long again for the handler to return.
constexpr absl::Duration kAnswersWithin = absl::Milliseconds(300);
constexpr absl::Duration kPause = absl::Milliseconds(1);
// Programs rarely use the last real-time signals.
constexpr int kSignalsToTry = 4;

// ---- Stacks. There is one capture at a time, in static memory.

struct Capture {
  // The thread that wants a stack sets kAsked, and the handler sets kTaken and
  // then kReady. From kTaken to kReady, however long this takes, the capture
  // belongs to the handler.
  enum State : int { kIdle, kAsked, kTaken, kReady };
  std::atomic<int> state{kIdle};
  std::atomic<int> thread{0};  // whose stack is asked for
  std::array<void*, kMaxFrames + kOwnFrames> frames;
  int size = 0;
  void* interrupted = nullptr;  // address at which the thread was
};
Capture capture;

struct Handlers {
  base::Mutex mutex;
  int users ABSL_GUARDED_BY(mutex) = 0;
  int signal ABSL_GUARDED_BY(mutex) = 0;  // 0: none is free
};
Handlers& TheHandlers() {
  static auto* const handlers = new Handlers;
  return *handlers;
}

void* InterruptedAt(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(machine.pc);
#else
  (void)machine;
  return nullptr;
#endif
}

void TakeStack(int, siginfo_t*, void* context) {
  const int error = errno;
  if (capture.thread.load() == static_cast<int>(syscall(SYS_gettid))) {
    int asked = Capture::kAsked;
    if (capture.state.compare_exchange_strong(asked, Capture::kTaken)) {
      // backtrace() has been called before, and so does not allocate any more.
      capture.size = backtrace(capture.frames.data(),
                               static_cast<int>(capture.frames.size()));
      capture.interrupted = InterruptedAt(context);
      capture.state.store(Capture::kReady);
    }
  }
  errno = error;
}

bool IsDefault(int signal) {
  struct sigaction action;
  return sigaction(signal, nullptr, &action) == 0 &&
         (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
}

// Returns the frames of the capture, innermost first, as addresses inside the
// calls.
std::vector<void*> Frames() {
  // Above the interrupted place are the handler and its trampoline.
  int first = 0;
  for (int i = 0; i < capture.size; ++i) {
    if (capture.frames[i] == capture.interrupted) first = i;
  }
  if (first == 0) first = std::min(2, capture.size);
  const int last = std::min(capture.size, first + kMaxFrames);
  std::vector<void*> frames;
  for (int i = first; i < last; ++i) {
    char* const address = static_cast<char*>(capture.frames[i]);
    frames.push_back(i > first ? address - 1 : address);
  }
  return frames;
}

std::string FramesText(std::vector<void*> frames) {
  const std::vector<std::string> names = NamesOfFrames(std::move(frames));
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? "\n" : "", "  #", i, " ", names[i]);
  }
  return text;
}

// ---- /proc.

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// Returns "clock_nanosleep (hrtimer_nanosleep)". `directory` belongs to a
// thread.
std::string SleepsIn(const std::string& directory) {
  const std::string call = ReadAll(directory + "/syscall");
  const std::vector<absl::string_view> words =
      absl::StrSplit(call, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t number = -1;
  std::string text;
  if (!words.empty() && absl::SimpleAtoi(words.front(), &number) &&
      number >= 0) {
    text = negotiation::SystemCallName(number);
  }
  const std::string place = ReadAll(directory + "/wchan");
  if (!place.empty() && place != "0") {
    absl::StrAppend(&text, text.empty() ? "" : " ", "(", place, ")");
  }
  return text;
}

// Reads the state, and the CPU time: of all threads if `directory` belongs to a
// process. False if it does not exist.
bool ReadStat(const std::string& directory, ProcessSample& sample) {
  const std::string stat = ReadAll(directory + "/stat");
  // The name is in brackets and may contain any character.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return false;
  const std::vector<absl::string_view> fields = absl::StrSplit(
      absl::string_view(stat).substr(name_end + 1), ' ', absl::SkipEmpty());
  if (fields.size() < 13) return false;
  int64_t user = 0;
  int64_t system = 0;
  if (!absl::SimpleAtoi(fields[11], &user) ||
      !absl::SimpleAtoi(fields[12], &system)) {
    return false;
  }
  sample.state = fields[0].front();
  sample.cpu_ns = (user + system) * (1'000'000'000 / sysconf(_SC_CLK_TCK));
  return true;
}

int64_t ReadIoBytes(const std::string& directory) {
  int64_t sum = 0;
  const std::string io = ReadAll(directory + "/io");
  for (absl::string_view line : absl::StrSplit(io, '\n')) {
    int64_t bytes = 0;
    if ((absl::ConsumePrefix(&line, "rchar: ") ||
         absl::ConsumePrefix(&line, "wchar: ")) &&
        absl::SimpleAtoi(line, &bytes)) {
      sum += bytes;
    }
  }
  return sum;
}

int64_t OwnCpuNanos() {
  timespec time = {};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0) return 0;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

ProcessSample OwnUsage(int64_t now_ns) {
  ProcessSample sample;
  sample.at_ns = now_ns;
  sample.cpu_ns = OwnCpuNanos();
  sample.io_bytes = ReadIoBytes("/proc/self");
  return sample;
}

// ---- SIGUSR2.

std::atomic<const std::function<void()>*> on_usr2{nullptr};
std::atomic<int> in_usr2{0};

void HandleUsr2(int) {
  const int error = errno;
  ++in_usr2;
  if (const auto* const asked = on_usr2.load()) (*asked)();
  --in_usr2;
  errno = error;
}

}  // namespace

std::string StackOf(pid_t thread) {
  Handlers& handlers = TheHandlers();
  base::MutexLock lock(&handlers.mutex);
  if (handlers.signal == 0) {
    return "  (no stack: the program uses the signals that are needed for it)";
  }
  // A late capture of an earlier request is dropped.
  if (capture.state.load() == Capture::kTaken) {
    return "  (no stack: the handler that takes it has not come back)";
  }
  capture.state.store(Capture::kIdle);
  capture.thread.store(thread);
  capture.state.store(Capture::kAsked);
  constexpr const char* kEnded = "  (no stack: that thread has ended)";
  if (syscall(SYS_tgkill, getpid(), thread, handlers.signal) != 0) {
    capture.state.store(Capture::kIdle);
    return kEnded;
  }
  const base::SteadyClock clock;
  const int64_t start_ns = clock.NowNanos();
  while (capture.state.load() != Capture::kReady) {
    const absl::Duration waited =
        absl::Nanoseconds(clock.NowNanos() - start_ns);
    if (waited >= kAnswersWithin) {
      int asked = Capture::kAsked;
      // Otherwise the handler is taking it now.
      if (capture.state.compare_exchange_strong(asked, Capture::kIdle)) {
        // The kernel accepts a signal for a thread that is about to end.
        return syscall(SYS_tgkill, getpid(), thread, 0) != 0
                   ? kEnded
                   : "  (no stack: the thread does not react to a signal)";
      }
    }
    if (waited >= 2 * kAnswersWithin) {
      return "  (no stack: the handler that takes it has not come back)";
    }
    absl::SleepFor(kPause);
  }
  std::vector<void*> frames = Frames();
  capture.state.store(Capture::kIdle);
  return FramesText(std::move(frames));
}

Explainer::Explainer(const base::Clock& clock, absl::Duration window)
    : clock_(clock),
      window_ns_(absl::ToInt64Nanoseconds(window)),
      thread_(static_cast<pid_t>(syscall(SYS_gettid))),
      older_(OwnUsage(clock.NowNanos())),
      newer_(older_) {
  // The first call loads the unwinder, so it happens here.
  void* frame;
  backtrace(&frame, 1);
  Handlers& handlers = TheHandlers();
  base::MutexLock lock(&handlers.mutex);
  if (handlers.users++ > 0) return;
  struct sigaction action = {};
  action.sa_sigaction = TakeStack;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (int i = 1; i <= kSignalsToTry && handlers.signal == 0; ++i) {
    const int signal = SIGRTMAX - i;
    if (IsDefault(signal) && sigaction(signal, &action, nullptr) == 0) {
      handlers.signal = signal;
    }
  }
}

Explainer::~Explainer() {
  Handlers& handlers = TheHandlers();
  base::MutexLock lock(&handlers.mutex);
  if (--handlers.users > 0 || handlers.signal == 0) return;
  // A signal that is still on its way would end the process: ignoring it drops
  // it.
  signal(handlers.signal, SIG_IGN);
  signal(std::exchange(handlers.signal, 0), SIG_DFL);
}

void Explainer::Sample() {
  const int64_t now_ns = clock_.NowNanos();
  if (now_ns - newer_.at_ns < window_ns_) return;
  older_ = std::exchange(newer_, OwnUsage(now_ns));
}

Explanation Explainer::Explain() {
  ProcessSample now = OwnUsage(clock_.NowNanos());
  const std::string directory = absl::StrCat("/proc/self/task/", thread_);
  ProcessSample thread;
  if (ReadStat(directory, thread)) {
    now.state = thread.state;
    now.sleeps_in = SleepsIn(directory);
  } else {
    now.state = 'S';
  }
  Explanation explanation;
  // The time covers at least one window, if that much has passed.
  const bool long_ago = now.at_ns - newer_.at_ns >= window_ns_;
  explanation.process = negotiation::LookOf(long_ago ? newer_ : older_, now);
  explanation.stacks = absl::StrCat("thread of init():\n", StackOf(thread_));
  if (explanation.stacks.size() > kMaxStacksBytes) {
    explanation.stacks.resize(kMaxStacksBytes);
    absl::StrAppend(&explanation.stacks, "...");
  }
  const bool same = syscall(SYS_gettid) == thread_;
  absl::StrAppend(&explanation.stacks,
                  same ? "\nbackground thread: idle, because that thread runs "
                         "the progress loop"
                       : "\nbackground thread: answers messages");
  // Looking names up takes time and reads files; this does not count as work of
  // the program.
  older_ = newer_ = OwnUsage(clock_.NowNanos());
  return explanation;
}

std::optional<ProcessSample> Explainer::Look(pid_t pid) const {
  const std::string directory = absl::StrCat("/proc/", pid);
  ProcessSample sample;
  sample.at_ns = clock_.NowNanos();
  if (!ReadStat(directory, sample)) return std::nullopt;
  sample.sleeps_in = SleepsIn(directory);
  sample.io_bytes = ReadIoBytes(directory);
  return sample;
}

absl::StatusOr<Processes> ExchangeProcesses(
    collective::Communicator& communicator) {
  struct Entry {
    int64_t pid;
    uint64_t host;
  };
  const uint64_t host = base::IdentityOfHost().host;
  const auto size = static_cast<size_t>(communicator.size());
  std::vector<Entry> entries(size);
  entries[static_cast<size_t>(communicator.rank())] = {getpid(), host};
  HVDLITE_RETURN_IF_ERROR(communicator.Allgather(
      {reinterpret_cast<std::byte*>(entries.data()), size * sizeof(Entry)},
      std::vector<size_t>(size, sizeof(Entry))));
  auto pids = std::make_shared<std::vector<int>>();
  Processes processes;
  for (const Entry& entry : entries) {
    pids->push_back(static_cast<int>(entry.pid));
    processes.visible.push_back(entry.host == host);
  }
  processes.pids = std::move(pids);
  return processes;
}

Usr2Handler::Usr2Handler(std::function<void()> asked)
    : asked_(std::move(asked)) {
  const std::function<void()>* none = nullptr;
  if (!IsDefault(SIGUSR2) || !on_usr2.compare_exchange_strong(none, &asked_)) {
    return;
  }
  struct sigaction action = {};
  action.sa_handler = HandleUsr2;
  action.sa_flags = SA_RESTART;
  installed_ = sigaction(SIGUSR2, &action, nullptr) == 0;
  if (!installed_) on_usr2 = nullptr;
}

Usr2Handler::~Usr2Handler() {
  if (!installed_) return;
  signal(SIGUSR2, SIG_DFL);
  on_usr2 = nullptr;
  // Another thread may be inside the handler.
  while (in_usr2.load() > 0) absl::SleepFor(kPause);
}

}  // namespace hvdlite::internal
