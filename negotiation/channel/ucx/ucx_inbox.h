// UcxInbox: receives the messages of a worker.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/channel/ucx/arrival_order.h"
#include "negotiation/channel/ucx/ucx_worker.h"

namespace hvdlite::negotiation {

// Messages arrive inside worker.Progress(). One thread at a time.
class UcxInbox {
 public:
  // Takes the messages of `senders`, ascending, that carry `nonce`. `worker`
  // outlives the inbox, which outlives its last Progress().
  UcxInbox(UcxWorker& worker, uint64_t nonce, std::vector<int> senders);
  UcxInbox(const UcxInbox&) = delete;
  UcxInbox& operator=(const UcxInbox&) = delete;

  // Begins to receive.
  absl::Status Open();

  std::optional<ControlMessage> Take() { return arrived_.Take(); }
  bool empty() const { return arrived_.empty(); }

  // Unavailable if a message could not be received.
  const absl::Status& status() const { return status_; }

  // Messages that were dropped, since they are not of this channel, and why the
  // first one was.
  int64_t num_dropped() const { return num_dropped_; }
  const std::string& why_dropped() const { return why_dropped_; }

 private:
  void Receive(const void* header, size_t header_length, const void* data,
               size_t length, uint64_t attributes);
  void Drop(absl::string_view why);
  void Fail(absl::string_view why);

  static ucs_status_t OnMessage(void* inbox, const void* header,
                                size_t header_length, void* data, size_t length,
                                const ucp_am_recv_param_t* param);

  UcxWorker& worker_;
  const uint64_t nonce_;
  const std::vector<int> senders_;
  ArrivalOrder arrived_;
  absl::Status status_;
  int64_t num_dropped_ = 0;
  std::string why_dropped_;
};

}  // namespace hvdlite::negotiation
