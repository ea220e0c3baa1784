// A channel for tests to derive from: a test overrides what it needs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "negotiation/channel/control_channel.h"

namespace hvdlite::testing {

// Forwards every call to `base`.
class ForwardingChannel : public negotiation::ControlChannel {
 public:
  explicit ForwardingChannel(std::unique_ptr<negotiation::ControlChannel> base)
      : base_(std::move(base)) {}

  int rank() const override { return base_->rank(); }
  int size() const override { return base_->size(); }
  absl::string_view name() const override { return base_->name(); }
  std::shared_ptr<const negotiation::WorldLayout> layout() const override {
    return base_->layout();
  }
  absl::Status Send(int to, std::string bytes) override {
    return base_->Send(to, std::move(bytes));
  }
  absl::StatusOr<std::optional<negotiation::ControlMessage>> TryReceive()
      override {
    return base_->TryReceive();
  }
  uint64_t delivered() override { return base_->delivered(); }
  absl::Status Flush(absl::Duration timeout) override {
    return base_->Flush(timeout);
  }
  std::vector<int> wake_descriptors() const override {
    return base_->wake_descriptors();
  }
  bool PrepareToSleep() override { return base_->PrepareToSleep(); }
  std::vector<std::string> TakeWarnings() override {
    return base_->TakeWarnings();
  }

 private:
  const std::unique_ptr<negotiation::ControlChannel> base_;
};

}  // namespace hvdlite::testing
