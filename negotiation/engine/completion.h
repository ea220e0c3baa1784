// Completion: tells when an operation is done and how it ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace hvdlite::negotiation {

// What an operation tells besides its outputs and status.
struct Outcome {
  // The operation was submitted as absent by every rank; nothing was reduced.
  bool absent_everywhere = false;
  // The new process set's id; of a join, the last rank to join.
  int64_t value = 0;
  // Not 0: the operation failed since the ranks were in different training
  // steps (Operation::step); all of them go on with this one.
  uint32_t next_step = 0;
};

// Of an operation that was submitted; see Coordinator. Thread-safe.
class Completion {
 public:
  virtual ~Completion() = default;
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  virtual const std::string& name() const = 0;
  bool done() const { return done_.load(std::memory_order_acquire); }

  // Only once done(), and of a prepared operation not once it is submitted
  // again:
  const absl::Status& status() const { return status_; }
  bool absent_everywhere() const { return outcome_.absent_everywhere; }
  int64_t value() const { return outcome_.value; }
  uint32_t next_step() const { return outcome_.next_step; }

 protected:
  explicit Completion(bool done) : done_(done) {}

  void Complete(absl::Status status, const Outcome& outcome) {
    status_ = std::move(status);
    outcome_ = outcome;
    done_.store(true, std::memory_order_release);
  }
  // To be completed anew, or not after all.
  void Rearm() { done_.store(false, std::memory_order_relaxed); }
  void Disarm() { done_.store(true, std::memory_order_release); }

 private:
  absl::Status status_;
  Outcome outcome_;
  std::atomic<bool> done_;
};

}  // namespace hvdlite::negotiation
