#include "negotiation/channel/ucx/ucx_inbox.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "negotiation/channel/ucx/ucx_link.h"

namespace hvdlite::negotiation {

UcxInbox::UcxInbox(UcxWorker& worker, uint64_t nonce, std::vector<int> senders)
    : worker_(worker), nonce_(nonce), senders_(std::move(senders)) {}

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
  if (header_length != sizeof read) {
    return Drop(absl::StrCat("a header of ", header_length, " bytes, not ",
                             sizeof read));
  }
  std::memcpy(&read, header, sizeof read);
  if (read.version != kMessageVersion) {
    return Drop(
        absl::StrCat("version ", read.version, ", not ", kMessageVersion));
  }
  if (read.nonce != nonce_) return Drop("the number of another job");
  if (!std::binary_search(senders_.begin(), senders_.end(),
                          static_cast<int>(read.from))) {
    return Fail(
        absl::StrCat("rank ", read.from, " is no neighbour of this rank"));
  }
  // The sender does not use rendezvous.
  if ((attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    return Fail("it does not bring its bytes");
  }
  arrived_.Add(static_cast<int>(read.from), read.number,
               std::string(static_cast<const char*>(data), length));
}

void UcxInbox::Drop(absl::string_view why) {
  if (num_dropped_++ == 0) why_dropped_ = std::string(why);
}

void UcxInbox::Fail(absl::string_view why) {
  status_.Update(absl::UnavailableError(
      absl::StrCat("control channel: a message could not be received: ", why)));
}

}  // namespace hvdlite::negotiation
