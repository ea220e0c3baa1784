#include "negotiation/engine/coordinator.h"

#include <sched.h>

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/contain_exceptions.h"
#include "base/logging.h"
#include "collective/topology.h"

namespace hvdlite::negotiation {
namespace {

// How long a shutdown whose timeout has passed waits for a bucket to end.
constexpr absl::Duration kPatienceAtShutdown = absl::Seconds(1);

// "rank 3 (host)".
std::string NameOfRank(const collective::Topology& topology) {
  return absl::StrCat("rank ", topology.rank, " (",
                      topology.host_of_rank[topology.rank], ")");
}

absl::Status ClosedError() {
  return absl::UnavailableError("hvdlite::shutdown() has been called");
}

}  // namespace

// Close() waits while an object of this class exists.
class Coordinator::Use {
 public:
  // Close() sets `closed_` first and then reads `users_`. Here the order is
  // reversed.
  explicit Use(Coordinator& coordinator) : coordinator_(coordinator) {
    coordinator_.users_.fetch_add(1);
    open_ = !coordinator_.closed_.load();
  }
  ~Use() {
    if (coordinator_.users_.fetch_sub(1) != 1 || !coordinator_.closed_.load()) {
      return;
    }
    base::MutexLock lock(&coordinator_.mutex_);
    coordinator_.unused_.NotifyAll();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  bool open() const { return open_; }

 private:
  Coordinator& coordinator_;
  bool open_;
};

Coordinator::Coordinator(const CoordinatorOptions& options,
                         CoordinatorEnvironment environment)
    : options_(options),
      environment_(std::move(environment)),
      no_memory_(absl::UnavailableError(absl::StrCat(
          NameOfRank(environment_.topology),
          " has no memory left to take part in the negotiation; give its "
          "process more memory, or run fewer ranks on its host"))),
      stuck_(absl::UnavailableError(
          absl::StrCat(NameOfRank(environment_.topology),
                       " has not come back from a call of the data plane, and "
                       "has no memory left for more details"))),
      operations_(environment_.topology.rank, environment_.topology.size,
                  options_.config.min_batch_bytes, environment_.clock),
      loop_(options_, environment_, operations_,
            {.no_memory = no_memory_,
             .broken = broken_,
             .break_world = [this](const absl::Status& why) { Break(why); },
             .come_to_end = [this] { return ComeToEnd(); },
             .stuck = [this](const std::string& what) { OnStuck(what); }}) {}

Coordinator::~Coordinator() { Close(); }

void Coordinator::Break(const absl::Status& status) noexcept {
  absl::Status why = status;
  if (!absl::IsUnavailable(why)) {
    why = no_memory_;
    base::ContainExceptions(
        [&] { why = absl::UnavailableError(status.message()); });
  }
  {
    base::MutexLock lock(&mutex_);
    if (!why_broken_.ok()) return;
    why_broken_ = why;
  }
  broken_ = true;
  base::ContainExceptions([&] {
    // Errors that follow from this rank's end must not look like its cause.
    const std::optional<std::string> left = operations_.left_because();
    environment_.logger.Error(
        left.has_value() ? absl::StrCat(why.message(), " (after: ", *left, ")")
                         : why.message());
  });
  base::ContainExceptions([&] {
    if (environment_.ended) environment_.ended(why);
  });
  operations_.Fail(why, interrupted_);
  loop_.WakeAll();
}

void Coordinator::OnStuck(const std::string& what) noexcept {
  interrupted_ = true;
  absl::Status status = stuck_;
  base::ContainExceptions([&] {
    status = absl::UnavailableError(absl::StrCat(
        NameOfRank(environment_.topology), " has not come back from ", what,
        " for ",
        absl::FormatDuration(
            base::SecondsOrNever(options_.config.watchdog_seconds)),
        "; another rank has probably died or been stopped, or a link is cut"));
  });
  Break(status);
  if (loop_.application_runs() && environment_.stuck) {
    environment_.stuck(status);
  }
}

bool Coordinator::ComeToEnd() {
  if (!shutting_down_) return false;
  if (at_end_) at_end_();
  return true;
}

absl::StatusOr<std::shared_ptr<const Completion>> Coordinator::Submit(
    Operation operation) {
  const Use use(*this);
  if (!use.open()) return ClosedError();
  const bool caller_waits = operation.caller_waits;
  bool worth_waking = false;
  auto completion = operations_.Submit(std::move(operation), &worth_waking);
  if (worth_waking && !caller_waits) loop_.Wake();
  return completion;
}

absl::StatusOr<PersistentPtr> Coordinator::MakePersistent(Operation operation,
                                                          Owner owner) {
  const Use use(*this);
  if (!use.open()) return ClosedError();
  return operations_.MakePersistent(std::move(operation), owner);
}

absl::Status Coordinator::SubmitPersistent(
    absl::Span<const PersistentPtr> operations, bool caller_waits) {
  const Use use(*this);
  if (!use.open()) return ClosedError();
  bool worth_waking = false;
  absl::Status status = operations_.SubmitPersistent(operations, &worth_waking);
  if (worth_waking && !caller_waits) loop_.Wake();
  return status;
}

absl::StatusOr<collective::TensorMemory> Coordinator::AllocateTensors(
    size_t bytes) {
  const Use use(*this);
  if (!use.open()) return ClosedError();
  return environment_.communicator.AllocateTensors(bytes);
}

// ---- Waiting.

absl::Status Coordinator::Wait(const Completion& completion) {
  WaitFor(completion, absl::InfiniteDuration());
  // A world that breaks completes all operations shortly after the waits end.
  while (!completion.done()) sched_yield();
  return completion.status();
}

bool Coordinator::WaitFor(const Completion& completion,
                          absl::Duration timeout) {
  if (completion.done()) return true;
  const Use use(*this);
  if (!use.open()) return true;
  operations_.MarkUrgent(completion);
  return loop_.RunUntil([&] { return completion.done(); }, timeout);
}

// ---- Leaving.

void Coordinator::Leave(const std::string& reason) {
  const Use use(*this);
  if (use.open() && operations_.Leave(reason)) loop_.Wake();
}

absl::Status Coordinator::Shutdown(const std::string& reason,
                                   absl::Duration timeout,
                                   std::function<void()> at_end) {
  at_end_ = std::move(at_end);
  shutting_down_ = true;
  Leave(reason);
  const bool over =
      loop_.RunUntil([this] { return loop_.shut_down() || broken(); }, timeout);
  if (!over) {
    const absl::Status late = absl::DeadlineExceededError(
        absl::StrCat("shutdown: not all ranks have called shutdown() within ",
                     absl::FormatDuration(timeout)));
    // The others may depend on this rank. A thread that still holds the
    // progress lock is inside the data plane, and may stay there.
    if (!loop_.Abort(late, kPatienceAtShutdown)) {
      interrupted_ = true;
      Break(late);
    }
  }
  loop_.Stop(/*joins=*/!interrupted_);
  if (loop_.shut_down()) return absl::OkStatus();
  // world_status() is not used: it names the rank that left first.
  base::MutexLock lock(&mutex_);
  return over ? why_broken_
              : absl::DeadlineExceededError(why_broken_.message());
}

void Coordinator::GiveUp(const std::string& reason) {
  Break(absl::UnavailableError(reason));
}

void Coordinator::Close() {
  closed_ = true;
  {
    base::MutexLock lock(&mutex_);
    while (users_ > 0) unused_.Wait(&mutex_);
  }
  loop_.Close();
}

}  // namespace hvdlite::negotiation
