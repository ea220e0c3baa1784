// The control channel of a world whose nodes have channels of their own.
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::negotiation {
namespace {

// Maximum time for flushing one of the two channels before the other one's
// turn.
constexpr absl::Duration kFlushSlice = absl::Milliseconds(1);

// The messages sent on one of the two channels: the numbers, counted over both,
// of those that may be undelivered, and how many were delivered before.
struct Undelivered {
  std::deque<uint64_t> numbers;
  uint64_t before = 0;
};

class RoutedChannel final : public ControlChannel {
 public:
  RoutedChannel(int rank, std::shared_ptr<const WorldLayout> layout,
                std::unique_ptr<ControlChannel> node,
                std::unique_ptr<ControlChannel> world);

  int rank() const override { return rank_; }
  int size() const override { return layout_->world_size(); }
  absl::string_view name() const override { return name_; }
  std::vector<int> wake_descriptors() const override;
  std::shared_ptr<const WorldLayout> layout() const override { return layout_; }

  absl::Status Send(int to, std::string bytes) override;
  absl::StatusOr<std::optional<ControlMessage>> TryReceive() override;
  uint64_t delivered() override;
  absl::Status Flush(absl::Duration timeout) override;
  bool PrepareToSleep() override;
  std::vector<std::string> TakeWarnings() override;

 private:
  const int rank_;
  const std::shared_ptr<const WorldLayout> layout_;
  const std::unique_ptr<ControlChannel> node_;
  const std::unique_ptr<ControlChannel> world_;
  std::vector<ControlChannel*> routes_;   // the needed ones of the two
  std::vector<Undelivered> undelivered_;  // by route
  std::string name_;
  uint64_t sent_ = 0;
  size_t next_route_ = 0;  // the next to receive from
};

RoutedChannel::RoutedChannel(int rank,
                             std::shared_ptr<const WorldLayout> layout,
                             std::unique_ptr<ControlChannel> node,
                             std::unique_ptr<ControlChannel> world)
    : rank_(rank),
      layout_(std::move(layout)),
      node_(std::move(node)),
      world_(std::move(world)) {
  const int on_node = static_cast<int>(layout_->RanksOnHostOf(rank).size());
  const bool other_nodes = on_node < size();
  assert(node_ == nullptr ? on_node == 1 : node_->size() == on_node);
  assert(world_ == nullptr || world_->size() == size());
  if (node_ != nullptr && (on_node > 1 || !other_nodes)) {
    routes_.push_back(node_.get());
  }
  if (world_ != nullptr && (other_nodes || routes_.empty())) {
    routes_.push_back(world_.get());
  }
  undelivered_.resize(routes_.size());
  for (const ControlChannel* route : routes_) {
    absl::StrAppend(&name_, name_.empty() ? "" : "+", route->name());
  }
}

std::vector<int> RoutedChannel::wake_descriptors() const {
  std::vector<int> all;
  for (const ControlChannel* route : routes_) {
    const std::vector<int> some = route->wake_descriptors();
    if (some.empty()) return {};
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

absl::Status RoutedChannel::Send(int to, std::string bytes) {
  const bool near = layout_->leader_index(to) == layout_->leader_index(rank_);
  ControlChannel* const channel = near ? node_.get() : world_.get();
  if (channel == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "control channel: rank ", to, " is on another node, which rank ", rank_,
        " does not reach"));
  }
  ++sent_;
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (routes_[i] == channel) undelivered_[i].numbers.push_back(sent_);
  }
  return channel->Send(near ? layout_->local_rank(to) : to, std::move(bytes));
}

absl::StatusOr<std::optional<ControlMessage>> RoutedChannel::TryReceive() {
  for (size_t i = 0; i < routes_.size(); ++i) {
    ControlChannel* const route = routes_[next_route_];
    next_route_ = (next_route_ + 1) % routes_.size();
    HVDLITE_ASSIGN_OR_RETURN(std::optional<ControlMessage> message,
                             route->TryReceive());
    if (!message.has_value()) continue;
    if (route == node_.get()) {
      message->from = layout_->RanksOnHostOf(rank_)[message->from];
    }
    return message;
  }
  return std::nullopt;
}

uint64_t RoutedChannel::delivered() {
  uint64_t delivered = sent_;
  for (size_t i = 0; i < routes_.size(); ++i) {
    Undelivered& of_route = undelivered_[i];
    const uint64_t now = routes_[i]->delivered();
    for (; !of_route.numbers.empty() && of_route.before < now;
         ++of_route.before) {
      of_route.numbers.pop_front();
    }
    if (!of_route.numbers.empty()) {
      delivered = std::min(delivered, of_route.numbers.front() - 1);
    }
  }
  return delivered;
}

absl::Status RoutedChannel::Flush(absl::Duration timeout) {
  if (routes_.size() == 1) return routes_[0]->Flush(timeout);
  // The channels take turns: another rank may be busy with one of them, and
  // needs this rank there before it receives from the other.
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    absl::Status late;
    for (ControlChannel* route : routes_) {
      const absl::Status status =
          route->Flush(std::clamp(left, absl::ZeroDuration(), kFlushSlice));
      if (!status.ok() && !absl::IsDeadlineExceeded(status)) return status;
      late.Update(status);
    }
    if (late.ok() || left <= absl::ZeroDuration()) return late;
  }
}

bool RoutedChannel::PrepareToSleep() {
  return std::all_of(routes_.begin(), routes_.end(), [](ControlChannel* route) {
    return route->PrepareToSleep();
  });
}

std::vector<std::string> RoutedChannel::TakeWarnings() {
  std::vector<std::string> all;
  for (ControlChannel* route : routes_) {
    for (std::string& warning : route->TakeWarnings()) {
      all.push_back(std::move(warning));
    }
  }
  return all;
}

}  // namespace

std::unique_ptr<ControlChannel> CreateRoutedChannel(
    int world_rank, std::shared_ptr<const WorldLayout> layout,
    std::unique_ptr<ControlChannel> node,
    std::unique_ptr<ControlChannel> world) {
  return std::make_unique<RoutedChannel>(world_rank, std::move(layout),
                                         std::move(node), std::move(world));
}

}  // namespace hvdlite::negotiation
