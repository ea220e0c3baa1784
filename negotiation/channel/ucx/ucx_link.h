// UcxLink: the connection of this rank to another one.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "negotiation/channel/ucx/ucx_worker.h"

namespace hvdlite::negotiation {

inline constexpr uint32_t kMessageVersion = 1;

// What precedes the bytes of every message.
struct MessageHeader {
  uint64_t nonce = 0;  // the same on all ranks of a channel, and on no others
  uint32_t version = kMessageVersion;
  uint32_t from = 0;
  uint64_t number = 0;  // counts the messages of one rank to another from 0
};

inline constexpr unsigned kMessageId = 1;

// What all links of a channel have in common.
struct UcxTraffic {
  uint64_t sent = 0;           // messages, over all links
  std::set<uint64_t> sending;  // those that have not left this rank, from 1
  int closing = 0;             // links that are not closed yet
  // See ControlChannel. UCX may keep the end of a message in a buffer of its
  // own where a socket does not take all of it: when its peer has left
  // megabytes unread. Its flush tells, but only once the peer makes progress,
  // which it may not do before this rank begins what the message is about.
  uint64_t delivered() const {
    return sending.empty() ? sent : *sending.begin() - 1;
  }
  absl::Status error;  // of the first link that broke: Unavailable
};

// An endpoint that tells when the other process dies, made when it is first
// needed. One thread at a time. Operations end inside worker.Progress().
class UcxLink {
 public:
  // `header` is that of the first message. `peer` is for error messages: "rank
  // 3 (host)". `address` is the other worker's.
  // The references outlive the link, and the link everything that it started,
  // unless the worker is abandoned.
  UcxLink(UcxWorker& worker, UcxTraffic& traffic, const MessageHeader& header,
          std::string peer, std::string address);
  UcxLink(const UcxLink&) = delete;
  UcxLink& operator=(const UcxLink&) = delete;

  // The following return why the link is broken, if it is.
  absl::Status Connect();  // does nothing a second time
  absl::Status Send(std::string bytes);

  // Closes at once; what has not left is given up. Nothing may follow.
  void StartClose();

 private:
  struct Message;
  // Remembers why the link is of no use any more; only the first counts.
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
  absl::Status status_;
};

}  // namespace hvdlite::negotiation
