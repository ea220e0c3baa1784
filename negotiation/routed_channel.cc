#include "negotiation/routed_channel.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace hvdlite::negotiation {
namespace {

// How long one of two channels is flushed before the other one gets its turn.
constexpr absl::Duration kFlushSlice = absl::Milliseconds(1);

// A channel and how its ranks are called in the world.
struct Route {
  std::unique_ptr<ControlChannel> channel;
  std::vector<int> world_ranks;  // empty: the same
  // Numbers, among all messages, of those that the channel may not have
  // delivered, and how many it has sent before these.
  mutable std::deque<uint64_t> sent = {};
  mutable uint64_t sent_before = 0;
};

class RoutedChannel final : public ControlChannel {
 public:
  RoutedChannel(int rank, absl::Span<const int> node_of_rank,
                std::unique_ptr<ControlChannel> node,
                std::unique_ptr<ControlChannel> world);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(places_.size()); }
  absl::string_view name() const override { return name_; }
  std::vector<int> wake_descriptors() const override;

  absl::Status Send(int to, std::string bytes) override;
  absl::StatusOr<std::optional<ControlMessage>> TryReceive() override;
  uint64_t delivered() const override;
  absl::Status Flush(absl::Duration timeout) override;
  bool PrepareToSleep() override;

 private:
  // Where to send what is for a rank.
  struct Place {
    ControlChannel* channel = nullptr;
    int rank = 0;  // there
  };

  const int rank_;
  std::vector<Route> routes_;  // one or two
  std::vector<Place> places_;  // per rank
  std::string name_;
  uint64_t sent_ = 0;
  size_t next_route_ = 0;  // whose turn it is to be received from
};

RoutedChannel::RoutedChannel(int rank, absl::Span<const int> node_of_rank,
                             std::unique_ptr<ControlChannel> node,
                             std::unique_ptr<ControlChannel> world)
    : rank_(rank) {
  const int size = static_cast<int>(node_of_rank.size());
  std::vector<int> on_node;
  for (int r = 0; r < size; ++r) {
    const bool near = node_of_rank[r] == node_of_rank[rank];
    places_.push_back(near ? Place{node.get(), static_cast<int>(on_node.size())}
                           : Place{world.get(), r});
    if (near) on_node.push_back(r);
  }
  const bool needs_world = on_node.size() < node_of_rank.size();
  assert(node == nullptr ? on_node.size() == 1
                         : node->size() == static_cast<int>(on_node.size()));
  assert(world == nullptr ? !needs_world : world->size() == size);
  if (node != nullptr && (on_node.size() > 1 || !needs_world)) {
    name_ = std::string(node->name());
    routes_.push_back({std::move(node), std::move(on_node)});
  }
  if (world != nullptr && (needs_world || routes_.empty())) {
    name_ += (name_.empty() ? "" : "+") + std::string(world->name());
    routes_.push_back({std::move(world), {}});
  }
}

std::vector<int> RoutedChannel::wake_descriptors() const {
  std::vector<int> all;
  for (const Route& route : routes_) {
    const std::vector<int> some = route.channel->wake_descriptors();
    if (some.empty()) return {};
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

absl::Status RoutedChannel::Send(int to, std::string bytes) {
  const Place& place = places_[to];
  for (const Route& route : routes_) {
    if (route.channel.get() == place.channel) route.sent.push_back(sent_ + 1);
  }
  ++sent_;
  return place.channel->Send(place.rank, std::move(bytes));
}

absl::StatusOr<std::optional<ControlMessage>> RoutedChannel::TryReceive() {
  for (size_t i = 0; i < routes_.size(); ++i) {
    const Route& route = routes_[next_route_];
    next_route_ = (next_route_ + 1) % routes_.size();
    HVDLITE_ASSIGN_OR_RETURN(std::optional<ControlMessage> message,
                             route.channel->TryReceive());
    if (!message.has_value()) continue;
    if (!route.world_ranks.empty()) {
      message->from = route.world_ranks[message->from];
    }
    return message;
  }
  return std::nullopt;
}

uint64_t RoutedChannel::delivered() const {
  uint64_t delivered = sent_;
  for (const Route& route : routes_) {
    const uint64_t of_route = route.channel->delivered();
    while (!route.sent.empty() && route.sent_before < of_route) {
      route.sent.pop_front();
      ++route.sent_before;
    }
    if (!route.sent.empty()) {
      delivered = std::min(delivered, route.sent.front() - 1);
    }
  }
  return delivered;
}

absl::Status RoutedChannel::Flush(absl::Duration timeout) {
  if (routes_.size() == 1) return routes_[0].channel->Flush(timeout);
  // By turns: what one has to send may be taken in only once another rank, for
  // which this one is needed, is through with the other.
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    absl::Status late;
    for (const Route& route : routes_) {
      const absl::Status status = route.channel->Flush(
          std::clamp(left, absl::ZeroDuration(), kFlushSlice));
      if (!status.ok() && !absl::IsDeadlineExceeded(status)) return status;
      late.Update(status);
    }
    if (late.ok() || left <= absl::ZeroDuration()) return late;
  }
}

bool RoutedChannel::PrepareToSleep() {
  return std::all_of(routes_.begin(), routes_.end(), [](const Route& route) {
    return route.channel->PrepareToSleep();
  });
}

}  // namespace

std::unique_ptr<ControlChannel> CreateRoutedChannel(
    int world_rank, absl::Span<const int> node_of_rank,
    std::unique_ptr<ControlChannel> node,
    std::unique_ptr<ControlChannel> world) {
  return std::make_unique<RoutedChannel>(world_rank, node_of_rank,
                                         std::move(node), std::move(world));
}

}  // namespace hvdlite::negotiation
