// A library that is loaded into each rank of a trial of tests/chaos/chaos
// (LD_PRELOAD). It reports that a rank is at a point, and holds the rank there
// until the fault has been injected. It can also end the rank from within.
//
// CHAOS_WATCH is "POINT COUNT RANK START". When this rank of this start (as in
// HVDLITE_RESTARTS) is at the point for the COUNT-th time, the file `reached`
// appears in CHAOS_DIRECTORY; the rank continues when the file `go` exists. A
// file strike.RANK contains exit, exception or uncaught: the main() thread of
// this rank does this at its next point. CHAOS_KILL has the same form as
// CHAOS_WATCH: the rank kills itself at this point.
#include <dlfcn.h>
#include <fcntl.h>
#include <hvdlite/timeline.h>
#include <hvdlite/world.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

constexpr int kLongestHoldMs = 5000;

std::string Variable(const std::string& name) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.compare(0, name.size() + 1, name + "=") == 0) {
      return text.substr(name.size() + 1);
    }
  }
  return "";
}

// An exception without a handler: it ends the program.
struct Uncaught {};

enum class MayThrow { kYes, kNo };

// The moment when this rank is at a point for the COUNT-th time.
class Moment {
 public:
  Moment(const std::string& text, const std::string& rank,
         const std::string& start) {
    std::istringstream words(text);
    int count = 0;
    std::string its_rank;
    std::string its_start;
    words >> point_ >> count >> its_rank >> its_start;
    if (its_rank == rank && its_start == start) left_ = count;
  }
  bool IsOf(const std::string& point) const {
    return left_ > 0 && point == point_;
  }
  bool Comes(const std::string& point) { return IsOf(point) && --left_ == 0; }

 private:
  std::string point_;
  std::atomic<int> left_ = 0;  // number of visits until the moment
};

// The rank of this process.
class Rank {
 public:
  Rank(const std::string& rank, const std::string& start,
       const std::string& store)
      : directory_(Variable("CHAOS_DIRECTORY")),
        strike_(directory_ + "/strike." + rank),
        watched_(Variable("CHAOS_WATCH"), rank, start),
        killed_(Variable("CHAOS_KILL"), rank, start) {
    const std::string program = program_invocation_short_name;
    is_in_trial_ = program.compare(0, 6, "train_") == 0 && !directory_.empty();
    const size_t colon = store.find_last_of(':');
    if (colon != std::string::npos) {
      store_port_ = std::atoi(store.c_str() + colon + 1);
    }
  }

  bool Watches(const char* point) const { return watched_.IsOf(point); }

  int store_port() const { return store_port_; }

  void At(const std::string& point, MayThrow may_throw) {
    if (!is_in_trial_) return;
    if (killed_.Comes(point)) raise(SIGKILL);
    if (watched_.Comes(point)) {
      const std::string reached = directory_ + "/reached";
      const std::string go = directory_ + "/go";
      close(open(reached.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
      for (int ms = 0; ms < kLongestHoldMs && access(go.c_str(), F_OK) != 0;
           ++ms) {
        StrikeIfTold(may_throw);
        usleep(1000);
      }
    }
    StrikeIfTold(may_throw);
  }

 private:
  void StrikeIfTold(MayThrow may_throw) {
    if (gettid() != getpid()) return;
    FILE* const file = std::fopen(strike_.c_str(), "re");
    if (file == nullptr) return;
    char word[16] = {};
    const bool told = std::fscanf(file, "%15s", word) == 1;
    std::fclose(file);
    const std::string deed = word;
    if (!told || (deed != "exit" && may_throw == MayThrow::kNo)) return;
    unlink(strike_.c_str());
    if (deed == "exit") std::exit(3);
    if (deed == "exception") throw std::runtime_error("thrown by chaos");
    throw Uncaught();
  }

  const std::string directory_;
  const std::string strike_;
  Moment watched_;
  Moment killed_;
  bool is_in_trial_ = false;
  int store_port_ = 0;
};

// The object is never destroyed, because threads outlive main().
Rank& ThisRank() {
  static Rank& rank = *new Rank(
      Variable("OMPI_COMM_WORLD_RANK") + Variable("PMI_RANK"),  // one is set
      Variable("HVDLITE_RESTARTS").empty() ? "0" : Variable("HVDLITE_RESTARTS"),
      Variable("HVDLITE_COMMIT_STORE"));
  return rank;
}

template <typename Function>
Function* Next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool IsCheckpoint(int descriptor) {
  char path[4096] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  return readlink(link.c_str(), path, sizeof(path) - 1) > 0 &&
         std::string(path).find("c.pt.tmp.") != std::string::npos;
}

thread_local int store_descriptor = -1;

__attribute__((constructor)) void Loaded() {
  ThisRank().At("loaded", MayThrow::kNo);
}

// Runs at the end of exit().
__attribute__((destructor)) void Ended() {
  if (ThisRank().Watches("ended")) ThisRank().At("ended", MayThrow::kNo);
}

}  // namespace

namespace hvdlite {

TraceSpan::TraceSpan(std::string name) {
  ThisRank().At(name, MayThrow::kYes);
  static auto* const next =
      Next(static_cast<void (*)(TraceSpan*, std::string)>(nullptr),
           "_ZN7hvdlite9TraceSpanC1ENSt7__cxx1112basic_stringIcSt11char_"
           "traitsIcESaIcEEE");
  next(this, std::move(name));
}

void init(const Config& config) {
  static auto* const next = Next(static_cast<void (*)(const Config&)>(nullptr),
                                 "_ZN7hvdlite4initERKNS_6ConfigE");
  ThisRank().At("init", MayThrow::kYes);
  next(config);
  ThisRank().At("init_over", MayThrow::kYes);
}

void shutdown() {
  static auto* const next =
      Next(static_cast<void (*)()>(nullptr), "_ZN7hvdlite8shutdownEv");
  ThisRank().At("shutdown", MayThrow::kYes);
  next();
}

}  // namespace hvdlite

extern "C" {

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  static auto* const next = Next(&MPI_Init_thread, "MPI_Init_thread");
  ThisRank().At("MPI_Init", MayThrow::kNo);
  const int result = next(argc, argv, required, provided);
  ThisRank().At("MPI_Init_over", MayThrow::kNo);
  return result;
}

int MPI_Finalize() {
  static auto* const next = Next(&MPI_Finalize, "MPI_Finalize");
  ThisRank().At("MPI_Finalize", MayThrow::kNo);
  const int result = next();
  ThisRank().At("MPI_Finalize_over", MayThrow::kNo);
  return result;
}

// ---- Points of other threads of the rank: a checkpoint, and a commit that is
// sent to the launcher.

ssize_t write(int descriptor, const void* data, size_t size) {
  static auto* const next = Next(&write, "write");
  if (ThisRank().Watches("write") && IsCheckpoint(descriptor)) {
    ThisRank().At("write", MayThrow::kNo);
  }
  return next(descriptor, data, size);
}

int fsync(int descriptor) {
  static auto* const next = Next(&fsync, "fsync");
  if (ThisRank().Watches("fsync") && IsCheckpoint(descriptor)) {
    ThisRank().At("fsync", MayThrow::kNo);
  }
  return next(descriptor);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const next =
      Next(static_cast<int (*)(const char*, const char*)>(nullptr), "rename");
  if (ThisRank().Watches("rename")) ThisRank().At("rename", MayThrow::kNo);
  return next(from, to);
}

int connect(int socket, const sockaddr* to, socklen_t size) {
  static auto* const next = Next(&connect, "connect");
  const int port = ThisRank().store_port();
  if (port != 0 && gettid() != getpid() && to->sa_family == AF_INET &&
      ntohs(reinterpret_cast<const sockaddr_in*>(to)->sin_port) == port) {
    store_descriptor = socket;
    if (ThisRank().Watches("connect")) ThisRank().At("connect", MayThrow::kNo);
  }
  return next(socket, to, size);
}

ssize_t send(int socket, const void* data, size_t size, int flags) {
  static auto* const next = Next(&send, "send");
  if (socket == store_descriptor && ThisRank().Watches("send")) {
    ThisRank().At("send", MayThrow::kNo);
  }
  return next(socket, data, size, flags);
}

}  // extern "C"
