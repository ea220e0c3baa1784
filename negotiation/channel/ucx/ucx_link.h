// UcxLink is the connection of this rank to another one, for sending. UcxInbox
// receives the messages of a worker, in order.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/channel/ucx/ucx_worker.h"

namespace hvdlite::negotiation {

inline constexpr uint32_t kMessageVersion = 1;

// Precedes the bytes of every message.
struct MessageHeader {
  uint64_t nonce = 0;  // the same on all ranks of a channel, and on no others
  uint32_t version = kMessageVersion;
  uint32_t from = 0;
  uint64_t number = 0;  // counts the messages of one rank to another from 0
};

inline constexpr unsigned kMessageId = 1;

// State that all links of a channel share.
struct UcxTraffic {
  uint64_t sent = 0;           // messages, over all links
  std::set<uint64_t> sending;  // numbers, from 1, not yet sent
  int closing = 0;             // links that are not closed yet
  // Implements ControlChannel::delivered(). If a socket does not take all of a
  // message, UCX may keep the end in a buffer: this happens when the peer has
  // left megabytes unread. UCX's flush would detect this, but it completes only
  // when the peer makes progress. The peer may wait for this rank first.
  uint64_t delivered() const {
    return sending.empty() ? sent : *sending.begin() - 1;
  }
  absl::Status error;  // of the first link that broke: Unavailable
};

// An endpoint that detects the death of the other process. It is made when it
// is first needed. One thread at a time may use it. Operations end inside
// worker.Progress().
class UcxLink {
 public:
  // `header` is the header of the first message. `peer` names the peer in
  // errors: "rank 3 (host)". `address` is the other worker's. The references
  // must outlive the link. The link must outlive all operations that it
  // started, unless the worker is abandoned.
  UcxLink(UcxWorker& worker, UcxTraffic& traffic, const MessageHeader& header,
          std::string peer, std::string address);
  UcxLink(const UcxLink&) = delete;
  UcxLink& operator=(const UcxLink&) = delete;

  // These functions return the reason if the link is broken.
  absl::Status Connect();  // only the first call connects
  absl::Status Send(std::string bytes);

  // Closes immediately and drops unsent messages. No call may follow.
  void StartClose();

 private:
  struct Message;
  // Stores why the link is broken; only the first reason counts.
  void Break(ucs_status_t status);
  void Fail(absl::string_view what);
  // Counts a close that has begun.
  void Track(ucs_status_ptr_t request);

  static void OnSent(void* request, ucs_status_t status, void* message);
  static void OnDone(void* request, ucs_status_t status, void* link);
  static void OnEndpointError(void* link, ucp_ep_h, ucs_status_t status);

  UcxWorker& worker_;
  UcxTraffic& traffic_;
  MessageHeader header_;  // of the next message
  const std::string peer_;
  const std::string address_;
  ucp_ep_h endpoint_ = nullptr;
  bool closing_ = false;
  const absl::Status no_memory_ = absl::UnavailableError(
      "control channel: a connection broke; there was no memory for the "
      "reason");
  absl::Status status_;
};

// Puts the messages of each sender back into order: transports complete a large
// message after smaller ones that were sent later. Each sender numbers its
// messages 0, 1, 2, ...; here they wait for their predecessors. One thread at a
// time may use it.
class ArrivalOrder {
 public:
  // Message `number` of rank `from` has arrived. Each message arrives once.
  void Add(int from, uint64_t number, std::string bytes);

  // Returns the next message that is in order, if any.
  std::optional<ControlMessage> Take();
  // Whether Take() has no message.
  bool empty() const { return in_order_.empty(); }

 private:
  struct Sender {
    uint64_t next = 0;
    std::map<uint64_t, std::string> early;
  };
  absl::flat_hash_map<int, Sender> senders_;
  std::deque<ControlMessage> in_order_;
};

// Messages arrive inside worker.Progress(). One thread at a time may use it.
class UcxInbox {
 public:
  // Takes the messages of `senders` (ascending) that carry `nonce`. `worker`
  // must outlive the inbox, which must outlive the last Progress().
  UcxInbox(UcxWorker& worker, uint64_t nonce, std::vector<int> senders);
  UcxInbox(const UcxInbox&) = delete;
  UcxInbox& operator=(const UcxInbox&) = delete;

  // Starts to receive.
  absl::Status Open();

  std::optional<ControlMessage> Take() { return arrived_.Take(); }
  bool empty() const { return arrived_.empty(); }

  // Unavailable if a message could not be received.
  const absl::Status& status() const { return status_; }

  // The number of dropped messages, which belong to another channel, and why
  // the first one was dropped.
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
  const absl::Status no_memory_ = absl::UnavailableError(
      "control channel: there was no memory to receive a message");
  absl::Status status_;
  int64_t num_dropped_ = 0;
  std::string why_dropped_;
};

}  // namespace hvdlite::negotiation
