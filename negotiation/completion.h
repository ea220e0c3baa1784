// Completion: tells when an operation is done and how it ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace hvdlite::negotiation {

// What an operation that succeeded tells besides its outputs.
struct Outcome {
  // The operation was submitted as absent by every rank; nothing was reduced.
  bool absent_everywhere = false;
  // The new process set's id; of a join, the last rank to join.
  int64_t value = 0;
};

// Made by Coordinator::Submit; its coordinator completes it exactly once.
// Thread-safe.
class Completion {
 public:
  explicit Completion(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  bool done() const { return done_.load(std::memory_order_acquire); }

  // Only once done():
  const absl::Status& status() const { return status_; }
  bool absent_everywhere() const { return outcome_.absent_everywhere; }
  int64_t value() const { return outcome_.value; }

  // For the coordinator alone.
  void Complete(absl::Status status, const Outcome& outcome) {
    status_ = std::move(status);
    outcome_ = outcome;
    done_.store(true, std::memory_order_release);
  }

 private:
  const std::string name_;
  absl::Status status_;
  Outcome outcome_;
  std::atomic<bool> done_{false};
};

}  // namespace hvdlite::negotiation
