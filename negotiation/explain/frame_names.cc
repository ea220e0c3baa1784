#include "negotiation/explain/frame_names.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/debugging/symbolize.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/contain_exceptions.h"
#include "base/mutex.h"

namespace hvdlite::internal {
namespace {

// An explanation that takes longer is not awaited any more.
constexpr absl::Duration kLongestLookup = absl::Seconds(1);
constexpr size_t kMaxFrameBytes = 160;

// For example "libtorch_cpu.so" or "/usr/bin/train".
absl::string_view BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

// `address` is inside the call; it is not the return address.
std::string FrameText(void* address) {
  Dl_info found = {};
  const bool known = dladdr(address, &found) != 0 && found.dli_fname != nullptr;
  const std::string file(known ? BaseName(found.dli_fname) : "?");
  char name[512];
  if (absl::Symbolize(address, name, sizeof name)) {
    std::string all(name);
    if (absl::StartsWith(all, "_Z")) {
      int status = 0;
      char* const whole = abi::__cxa_demangle(name, nullptr, nullptr, &status);
      if (whole != nullptr) all = whole;
      std::free(whole);
    }
    return absl::StrCat(absl::string_view(all).substr(0, kMaxFrameBytes),
                        all.size() > kMaxFrameBytes ? "..." : "", " (", file,
                        ")");
  }
  const auto offset = reinterpret_cast<uintptr_t>(address) -
                      reinterpret_cast<uintptr_t>(found.dli_fbase);
  return absl::StrCat("? (", file, "+0x", absl::Hex(offset), ")");
}

// The state shared by the thread that looks names up and the one that waits.
class Lookup {
 public:
  explicit Lookup(std::vector<void*> frames) : frames_(std::move(frames)) {}

  void Run() {
    for (void* const frame : frames_) {
      std::string name = FrameText(frame);
      base::MutexLock lock(&mutex_);
      names_.push_back(std::move(name));
    }
  }

  void Finish() {
    base::MutexLock lock(&mutex_);
    finished_ = true;
    changed_.NotifyAll();
  }

  // Waits for Finish(), for a limited time.
  void Await() {
    const base::SteadyClock clock;
    const int64_t start_ns = clock.NowNanos();
    base::MutexLock lock(&mutex_);
    while (!finished_) {
      const absl::Duration left =
          kLongestLookup - absl::Nanoseconds(clock.NowNanos() - start_ns);
      if (left <= absl::ZeroDuration()) return;
      changed_.WaitFor(&mutex_, left);
    }
  }

  // Returns the names, and addresses for those that are not known yet.
  std::vector<std::string> Known() {
    base::MutexLock lock(&mutex_);
    std::vector<std::string> names = names_;
    for (size_t i = names.size(); i < frames_.size(); ++i) {
      names.push_back(
          absl::StrCat("? (at 0x",
                       absl::Hex(reinterpret_cast<uintptr_t>(frames_[i])),
                       "; its name could not be looked up in time)"));
    }
    return names;
  }

 private:
  const std::vector<void*> frames_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);  // the first ones
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::vector<std::string> NamesOfFrames(std::vector<void*> frames) {
  static std::atomic<bool> busy{false};  // perhaps for ever
  const auto lookup = std::make_shared<Lookup>(std::move(frames));
  if (!busy.exchange(true)) {
    try {
      std::thread([lookup] {
        base::ContainExceptions([&] { lookup->Run(); });
        busy = false;
        lookup->Finish();
      }).detach();
      lookup->Await();
    } catch (const std::exception&) {  // no thread is available
      busy = false;
    }
  }
  return lookup->Known();
}

}  // namespace hvdlite::internal
