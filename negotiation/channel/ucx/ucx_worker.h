// UcxWorker owns a UCX context with one worker.
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

// Converts a UCX status to OK, or to Unavailable with the name of the call and
// UCX's text.
absl::Status UcxStatus(ucs_status_t status, absl::string_view call);

// One thread at a time may call. Callbacks of UCX run only inside Progress()
// and ProgressUntil().
class UcxWorker {
 public:
  // `transports` has the syntax of UCX_TLS. A variable of `environment`
  // overrides it (see UcxChannelOptions). Errors: Unavailable.
  static absl::StatusOr<std::unique_ptr<UcxWorker>> Create(
      const std::string& transports, const base::Environment& environment);

  // All endpoints must be closed, unless the worker was abandoned.
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_worker_h handle() const { return worker_; }
  // The address that other workers connect to.
  const std::string& address() const { return address_; }
  // Readable when Progress() has work, after Arm() returned true.
  int descriptor() const { return descriptor_; }

  // Does the pending work. Returns false if there was none.
  bool Progress() { return ucp_worker_progress(worker_) != 0; }

  // Call this when Progress() has returned false. True: the descriptor will
  // report the next event. False: an event has arrived meanwhile; call
  // Progress() again.
  absl::StatusOr<bool> Arm();

  // Calls Progress() until `done`, and sleeps in between. Returns
  // DeadlineExceeded after `timeout`.
  absl::Status ProgressUntil(absl::FunctionRef<bool()> done,
                             absl::Duration timeout);

  // Never frees the worker or the memory that it may still write to.
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
