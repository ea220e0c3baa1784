#include "negotiation/ucx/ucx_inbox.h"

#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "negotiation/ucx/ucx_link.h"

namespace hvdlite::negotiation {

UcxInbox::UcxInbox(UcxWorker& worker, int rank, int size)
    : worker_(worker), rank_(rank), size_(size), arrived_(size) {}

absl::Status UcxInbox::Open() {
  ucp_am_handler_param_t params = {};
  params.field_mask =
      UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = kMessageId;
  params.flags = UCP_AM_FLAG_WHOLE_MSG;
  params.cb = OnMessage;
  params.arg = this;
  return UcxStatus(ucp_worker_set_am_recv_handler(worker_.handle(), &params),
                   "ucp_worker_set_am_recv_handler");
}

ucs_status_t UcxInbox::OnMessage(void* inbox, const void* header,
                                 size_t header_length, void* data,
                                 size_t length,
                                 const ucp_am_recv_param_t* param) {
  UcxInbox& self = *static_cast<UcxInbox*>(inbox);
  // Nothing may be thrown through UCX.
  try {
    self.Receive(header, header_length, data, length, param->recv_attr);
  } catch (const std::exception& error) {
    self.Fail(error.what());
  }
  return UCS_OK;
}

void UcxInbox::Receive(const void* header, size_t header_length,
                       const void* data, size_t length, uint64_t attributes) {
  MessageHeader read;
  if (header_length == sizeof read) std::memcpy(&read, header, sizeof read);
  if (header_length != sizeof read ||
      read.from >= static_cast<uint32_t>(size_) ||
      read.from == static_cast<uint32_t>(rank_)) {
    return Fail("it has no valid header");
  }
  // The sender does not use rendezvous.
  if ((attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    return Fail("it does not bring its bytes");
  }
  arrived_.Add(static_cast<int>(read.from), read.number,
               std::string(static_cast<const char*>(data), length));
}

void UcxInbox::Fail(absl::string_view why) {
  status_.Update(absl::UnavailableError(
      absl::StrCat("control channel: a message could not be received: ", why)));
}

}  // namespace hvdlite::negotiation
