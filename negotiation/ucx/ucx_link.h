// UcxLink: the connection of this rank to another one.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "negotiation/ucx/ucx_worker.h"

namespace hvdlite::negotiation {

// What precedes the bytes of every message.
struct MessageHeader {
  uint32_t from = 0;
  uint32_t unused = 0;
  uint64_t number = 0;  // counts the messages of one rank to another from 0
};

inline constexpr unsigned kMessageId = 1;

// What all links of a channel have in common.
struct UcxTraffic {
  uint64_t sent = 0;           // messages, over all links
  std::set<uint64_t> sending;  // those that have not left this rank, from 1
  int closing = 0;             // links that are not closed yet
  // See ControlChannel.
  uint64_t delivered() const {
    return sending.empty() ? sent : *sending.begin() - 1;
  }
  absl::Status error;  // of the first link that broke: Unavailable
};

// An endpoint that tells when the other process dies, made when it is first
// needed. One thread at a time. Operations end inside worker.Progress().
class UcxLink {
 public:
  // `peer` is for messages: "rank 3 (host)". `address` is the other worker's.
  // The references outlive the link, and the link everything that it started,
  // unless the worker is abandoned.
  UcxLink(UcxWorker& worker, UcxTraffic& traffic, uint32_t rank,
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
  const uint32_t rank_;
  const std::string peer_;
  const std::string address_;
  ucp_ep_h endpoint_ = nullptr;
  uint64_t next_number_ = 0;
  bool closing_ = false;
  absl::Status status_;
};

}  // namespace hvdlite::negotiation
