#include "negotiation/ucx/ucx_link.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvdlite::negotiation {
namespace {

// What any socket takes at once, though its peer does not read; and after how
// much of that UCX is asked whether it has.
constexpr size_t kSocketBytes = 4096;
constexpr size_t kAskAboveBytes = 2048;

}  // namespace

// UCX reads it until OnSent, which deletes it.
struct UcxLink::Message {
  UcxLink& link;
  MessageHeader header;
  std::string bytes;
};

UcxLink::UcxLink(UcxWorker& worker, UcxTraffic& traffic,
                 const MessageHeader& header, std::string peer,
                 std::string address)
    : worker_(worker),
      traffic_(traffic),
      header_(header),
      peer_(std::move(peer)),
      address_(std::move(address)) {}

absl::Status UcxLink::Connect() {
  if (endpoint_ != nullptr || !status_.ok()) return status_;
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address_.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {.cb = OnEndpointError, .arg = this};
  const ucs_status_t status =
      ucp_ep_create(worker_.handle(), &params, &endpoint_);
  if (status != UCS_OK) {
    endpoint_ = nullptr;
    Fail(absl::StrCat("cannot be made: ", ucs_status_string(status),
                      "; UCX_TLS and UCX_NET_DEVICES say what UCX may use"));
  }
  return status_;
}

absl::Status UcxLink::Send(std::string bytes) {
  HVDLITE_RETURN_IF_ERROR(Connect());
  std::unique_ptr<Message> message(
      new Message{*this, header_, std::move(bytes)});
  ++header_.number;
  ++traffic_.sent;
  if (unflushed_ == 0) unflushed_ = traffic_.sent;
  unflushed_bytes_ += sizeof message->header + message->bytes.size();
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  // Large messages, too, leave without the receiver's doing.
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = OnSent;
  params.user_data = message.get();
  const ucs_status_ptr_t request = ucp_am_send_nbx(
      endpoint_, kMessageId, &message->header, sizeof message->header,
      message->bytes.data(), message->bytes.size(), &params);
  if (UCS_PTR_IS_ERR(request)) {
    Break(UCS_PTR_STATUS(request));
    return status_;
  }
  if (UCS_PTR_IS_PTR(request)) {
    ++traffic_.sending;
    ++sending_;
    (void)message.release();
  }
  return absl::OkStatus();
}

uint64_t UcxLink::first_undelivered() {
  if (flushing_ == 0 && unflushed_bytes_ > kAskAboveBytes &&
      endpoint_ != nullptr) {
    StartFlush();
  }
  if (flushing_ != 0) return flushing_;
  return sending_ > 0 || unflushed_bytes_ > kSocketBytes ? unflushed_ : 0;
}

void UcxLink::StartFlush() {
  ucp_request_param_t params = {};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = OnFlushed;
  params.user_data = this;
  const ucs_status_ptr_t request = ucp_ep_flush_nbx(endpoint_, &params);
  if (UCS_PTR_IS_PTR(request)) {
    ++traffic_.flushing;
    flushing_ = unflushed_;
  } else if (UCS_PTR_IS_ERR(request)) {
    Break(UCS_PTR_STATUS(request));
  }
  unflushed_ = 0;
  unflushed_bytes_ = 0;
}

void UcxLink::OnFlushed(void* request, ucs_status_t status, void* link) {
  UcxLink& self = *static_cast<UcxLink*>(link);
  --self.traffic_.flushing;
  self.flushing_ = 0;
  if (status != UCS_OK) self.Break(status);
  ucp_request_free(request);
}

void UcxLink::StartClose() {
  if (endpoint_ == nullptr) return;
  closing_ = true;
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  params.cb.send = OnDone;
  params.user_data = this;
  Track(ucp_ep_close_nbx(std::exchange(endpoint_, nullptr), &params));
}

void UcxLink::Track(ucs_status_ptr_t request) {
  if (UCS_PTR_IS_PTR(request)) {
    ++traffic_.closing;
  } else if (UCS_PTR_IS_ERR(request)) {
    Break(UCS_PTR_STATUS(request));
  }
}

void UcxLink::Break(ucs_status_t status) {
  Fail(absl::StrCat("broke: ", ucs_status_string(status),
                    "; its process has died, or the link between the hosts is "
                    "cut"));
}

void UcxLink::Fail(absl::string_view what) {
  if (closing_ || !status_.ok()) return;
  status_ = absl::UnavailableError(
      absl::StrCat("control channel: the connection to ", peer_, " ", what));
  traffic_.error.Update(status_);
}

void UcxLink::OnSent(void* request, ucs_status_t status, void* message) {
  const std::unique_ptr<Message> sent(static_cast<Message*>(message));
  --sent->link.traffic_.sending;
  --sent->link.sending_;
  if (status != UCS_OK) sent->link.Break(status);
  ucp_request_free(request);
}

void UcxLink::OnDone(void* request, ucs_status_t status, void* link) {
  UcxLink& self = *static_cast<UcxLink*>(link);
  --self.traffic_.closing;
  if (status != UCS_OK) self.Break(status);
  ucp_request_free(request);
}

void UcxLink::OnEndpointError(void* link, ucp_ep_h, ucs_status_t status) {
  static_cast<UcxLink*>(link)->Break(status);
}

}  // namespace hvdlite::negotiation
