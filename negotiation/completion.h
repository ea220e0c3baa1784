// Completion: tells when an operation is done and how it ended.
#pragma once

#include <atomic>
#include <string>

#include "absl/status/status.h"

namespace hvdlite::negotiation {

// Made by Coordinator::Submit; its coordinator completes it exactly once.
// Thread-safe.
class Completion {
 public:
  explicit Completion(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  bool done() const { return done_.load(std::memory_order_acquire); }

  // Only once done():
  const absl::Status& status() const { return status_; }
  // The operation was submitted as absent by every rank; nothing was reduced.
  bool absent_everywhere() const { return absent_everywhere_; }

  // For the coordinator alone.
  void Complete(absl::Status status, bool absent_everywhere) {
    status_ = std::move(status);
    absent_everywhere_ = absent_everywhere;
    done_.store(true, std::memory_order_release);
  }

 private:
  const std::string name_;
  absl::Status status_;
  bool absent_everywhere_ = false;
  std::atomic<bool> done_{false};
};

}  // namespace hvdlite::negotiation
