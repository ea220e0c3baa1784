#include "negotiation/channel/ucx/ucx_link.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/contain_exceptions.h"
#include "base/status_macros.h"

namespace hvdlite::negotiation {

// UCX reads the message until OnSent, which deletes it.
struct UcxLink::Message {
  UcxLink& link;
  MessageHeader header;
  std::string bytes;
  uint64_t number = 0;  // counted over all links
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
                      "; check UCX_TLS and UCX_NET_DEVICES"));
  }
  return status_;
}

absl::Status UcxLink::Send(std::string bytes) {
  HVDLITE_RETURN_IF_ERROR(Connect());
  std::unique_ptr<Message> message(
      new Message{*this, header_, std::move(bytes), ++traffic_.sent});
  ++header_.number;
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  // With this flag, large messages also leave without any action of the
  // receiver.
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
    // UCX owns the message now.
    traffic_.sending.insert(message.release()->number);
  }
  return absl::OkStatus();
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
  std::string what;
  base::ContainExceptions([&] {
    what = absl::StrCat("broke: ", ucs_status_string(status),
                        "; its process has died, or the link between the hosts "
                        "is cut");
  });
  Fail(what);
}

void UcxLink::Fail(absl::string_view what) {
  if (closing_ || !status_.ok()) return;
  status_ = no_memory_;
  base::ContainExceptions([&] {
    status_ = absl::UnavailableError(
        absl::StrCat("control channel: the connection to ", peer_, " ", what));
  });
  traffic_.error.Update(status_);
}

void UcxLink::OnSent(void* request, ucs_status_t status, void* message) {
  const std::unique_ptr<Message> sent(static_cast<Message*>(message));
  sent->link.traffic_.sending.erase(sent->number);
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

void ArrivalOrder::Add(int from, uint64_t number, std::string bytes) {
  Sender& sender = senders_[from];
  if (number != sender.next) {
    sender.early.emplace(number, std::move(bytes));
    return;
  }
  in_order_.push_back({from, std::move(bytes)});
  ++sender.next;
  while (!sender.early.empty() && sender.early.begin()->first == sender.next) {
    in_order_.push_back({from, std::move(sender.early.begin()->second)});
    sender.early.erase(sender.early.begin());
    ++sender.next;
  }
}

std::optional<ControlMessage> ArrivalOrder::Take() {
  if (in_order_.empty()) return std::nullopt;
  ControlMessage message = std::move(in_order_.front());
  in_order_.pop_front();
  return message;
}

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
  // No exception may pass through UCX.
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
        absl::StrCat("rank ", read.from, " is not a neighbour of this rank"));
  }
  // The sender does not use rendezvous.
  if ((attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    return Fail("it uses rendezvous");
  }
  arrived_.Add(static_cast<int>(read.from), read.number,
               std::string(static_cast<const char*>(data), length));
}

void UcxInbox::Drop(absl::string_view why) {
  if (num_dropped_++ == 0) why_dropped_ = std::string(why);
}

void UcxInbox::Fail(absl::string_view why) {
  absl::Status status = no_memory_;
  base::ContainExceptions([&] {
    status = absl::UnavailableError(absl::StrCat(
        "control channel: a message could not be received: ", why));
  });
  status_.Update(status);
}

}  // namespace hvdlite::negotiation
