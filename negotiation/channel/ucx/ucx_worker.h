// UcxWorker: a UCX context with one worker, from creation to destruction.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/environment.h"

namespace hvdlite::negotiation {

// OK, or Unavailable with the name of the call and UCX's text.
absl::Status UcxStatus(ucs_status_t status, absl::string_view call);

// One calling thread at a time. Callbacks of UCX run inside Progress() and
// ProgressUntil() only.
class UcxWorker {
 public:
  // `transports` is UCX's list (as UCX_TLS); a variable of `environment` wins
  // (see UcxChannelOptions). Errors: Unavailable.
  static absl::StatusOr<std::unique_ptr<UcxWorker>> Create(
      const std::string& transports, const base::Environment& environment);

  // All endpoints are closed, unless it was abandoned.
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_worker_h handle() const { return worker_; }
  // What others need to connect to it.
  const std::string& address() const { return address_; }
  // Readable when Progress() has something to do after Arm() returned true.
  int descriptor() const { return descriptor_; }

  // Does what there is to do; false if there was nothing.
  bool Progress() { return ucp_worker_progress(worker_) != 0; }

  // To be called when Progress() has returned false. True: the descriptor will
  // tell of the next event. False: one has come meanwhile; progress again.
  absl::StatusOr<bool> Arm();

  // Progresses, asleep in between, until `done`. DeadlineExceeded after
  // `timeout`.
  absl::Status ProgressUntil(absl::FunctionRef<bool()> done,
                             absl::Duration timeout);

  // Leaves the worker and what it may still write to in memory for ever.
  void Abandon() { abandoned_ = true; }

 private:
  UcxWorker() = default;
  absl::Status Start(const std::string& transports,
                     const base::Environment& environment);

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::string address_;
  int descriptor_ = -1;
  bool abandoned_ = false;
};

}  // namespace hvdlite::negotiation
