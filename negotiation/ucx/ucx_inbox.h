// UcxInbox: receives the messages of a worker.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "negotiation/control_channel.h"
#include "negotiation/ucx/arrival_order.h"
#include "negotiation/ucx/ucx_worker.h"

namespace hvdlite::negotiation {

// Messages arrive inside worker.Progress(). One thread at a time.
class UcxInbox {
 public:
  // `worker` outlives the inbox, which outlives its last Progress().
  UcxInbox(UcxWorker& worker, int rank, int size);
  UcxInbox(const UcxInbox&) = delete;
  UcxInbox& operator=(const UcxInbox&) = delete;

  // Begins to receive.
  absl::Status Open();

  std::optional<ControlMessage> Take() { return arrived_.Take(); }

  // Unavailable if a message could not be received.
  const absl::Status& status() const { return status_; }

 private:
  void Receive(const void* header, size_t header_length, const void* data,
               size_t length, uint64_t attributes);
  void Fail(absl::string_view why);

  static ucs_status_t OnMessage(void* inbox, const void* header,
                                size_t header_length, void* data, size_t length,
                                const ucp_am_recv_param_t* param);

  UcxWorker& worker_;
  const int rank_;
  const int size_;
  ArrivalOrder arrived_;
  absl::Status status_;
};

}  // namespace hvdlite::negotiation
