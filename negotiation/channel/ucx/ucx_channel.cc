#include "negotiation/channel/ucx/ucx_channel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "negotiation/channel/ucx/ucx_link.h"
#include "negotiation/channel/ucx/ucx_worker.h"

namespace hvdlite::negotiation {
namespace {

// How long the destructor sends, and then closes.
constexpr absl::Duration kFlushPatience = absl::Seconds(1);
constexpr absl::Duration kClosePatience = absl::Seconds(1);

class UcxChannel final : public ControlChannel {
 public:
  // `neighbours` is in ascending order.
  UcxChannel(std::unique_ptr<UcxWorker> worker, int rank, int size,
             uint64_t nonce, const std::vector<int>& neighbours)
      : worker_(std::move(worker)),
        rank_(rank),
        size_(size),
        nonce_(nonce),
        neighbours_(neighbours),
        inbox_(*worker_, nonce, neighbours) {}
  ~UcxChannel() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::string_view name() const override { return "UCX"; }
  std::vector<int> wake_descriptors() const override {
    return {worker_->descriptor()};
  }

  // Call this first: it starts to receive, and swaps addresses with the
  // neighbours.
  absl::Status Open(collective::Communicator& bootstrap,
                    absl::Span<const std::string> host_of_rank);
  // Call this second: it connects the neighbours and exchanges a message with
  // each.
  absl::Status TryNeighbours(collective::Communicator& bootstrap,
                             absl::Duration timeout,
                             absl::Span<const std::string> host_of_rank);

  absl::Status Send(int to, std::string bytes) override;
  absl::StatusOr<std::optional<ControlMessage>> TryReceive() override;
  uint64_t delivered() override {
    return std::max(traffic_.delivered(), own_messages_) - own_messages_;
  }
  absl::Status Flush(absl::Duration timeout) override;
  bool PrepareToSleep() override;
  std::vector<std::string> TakeWarnings() override;

 private:
  // Returns why the channel is broken, if it is.
  absl::Status status() const;

  const std::unique_ptr<UcxWorker> worker_;
  const int rank_;
  const int size_;
  const uint64_t nonce_;
  const std::vector<int> neighbours_;
  UcxTraffic traffic_;
  uint64_t own_messages_ = 0;  // sent by TryNeighbours; not in delivered()
  UcxInbox inbox_;
  absl::flat_hash_map<int, std::unique_ptr<UcxLink>> links_;  // per neighbour
  // Whether an operation has started since TryReceive found nothing to do. The
  // operation may need more progress.
  bool needs_progress_ = true;
  absl::Status sleepless_;  // why threads cannot sleep on the worker
  bool has_warned_ = false;
};

UcxChannel::~UcxChannel() {
  Flush(kFlushPatience).IgnoreError();
  for (const auto& [rank, link] : links_) link->StartClose();
  const absl::Status closed = worker_->ProgressUntil(
      [&] { return traffic_.sending.empty() && traffic_.closing == 0; },
      kClosePatience);
  // UCX may still read the buffers of unfinished messages.
  if (!closed.ok()) worker_->Abandon();
}

absl::Status UcxChannel::status() const {
  absl::Status status = traffic_.error;
  status.Update(inbox_.status());
  status.Update(sleepless_);
  if (status.ok() || inbox_.num_dropped() == 0) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; ", inbox_.num_dropped(),
                   " messages that are not of this job were dropped"));
}

absl::Status UcxChannel::Send(int to, std::string bytes) {
  const auto link = links_.find(to);
  if (link == links_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("control channel: rank ", to,
                     " is not a neighbour of rank ", rank_, " in the tree"));
  }
  needs_progress_ = true;
  return link->second->Send(std::move(bytes));
}

absl::StatusOr<std::optional<ControlMessage>> UcxChannel::TryReceive() {
  do {
    std::optional<ControlMessage> message = inbox_.Take();
    if (message.has_value()) return message;
  } while (worker_->Progress());
  needs_progress_ = false;
  HVDLITE_RETURN_IF_ERROR(status());
  return std::nullopt;
}

bool UcxChannel::PrepareToSleep() {
  if (needs_progress_ || !inbox_.empty()) return false;
  const absl::StatusOr<bool> armed = worker_->Arm();
  sleepless_.Update(armed.status());
  return armed.ok() && *armed;
}

std::vector<std::string> UcxChannel::TakeWarnings() {
  if (inbox_.num_dropped() == 0 || has_warned_) return {};
  has_warned_ = true;
  return {absl::StrCat(
      "control channel: dropped a message that is not of this job (it has ",
      inbox_.why_dropped(),
      "): another process sends to an address that belongs to this one now; "
      "further ones are dropped without a warning")};
}

absl::Status UcxChannel::Flush(absl::Duration timeout) {
  // UCX's own flush is not used: it waits for the other side to make progress.
  const absl::Status flushed =
      worker_->ProgressUntil([&] { return traffic_.sending.empty(); }, timeout);
  needs_progress_ = true;
  HVDLITE_RETURN_IF_ERROR(status());
  if (absl::IsDeadlineExceeded(flushed)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "control channel: ", traffic_.sending.size(),
        " messages were not delivered within ", absl::FormatDuration(timeout)));
  }
  return flushed;
}

// Two neighbours swap texts of any length.
absl::StatusOr<std::string> SwapTexts(collective::Communicator& bootstrap,
                                      int peer, const std::string& mine) {
  const uint64_t own_length = mine.size();
  uint64_t length = 0;
  HVDLITE_RETURN_IF_ERROR(bootstrap.Exchange(
      peer,
      {reinterpret_cast<const std::byte*>(&own_length), sizeof own_length},
      {reinterpret_cast<std::byte*>(&length), sizeof length}));
  std::string theirs(length, '\0');
  HVDLITE_RETURN_IF_ERROR(bootstrap.Exchange(
      peer, {reinterpret_cast<const std::byte*>(mine.data()), mine.size()},
      {reinterpret_cast<std::byte*>(theirs.data()), theirs.size()}));
  return theirs;
}

absl::Status UcxChannel::Open(collective::Communicator& bootstrap,
                              absl::Span<const std::string> host_of_rank) {
  // No deadlock: all ranks go through their pairs in one order, by the lower
  // and then by the higher rank. So the first pair that is not done can run.
  for (const int peer : neighbours_) {
    HVDLITE_ASSIGN_OR_RETURN(std::string address,
                             SwapTexts(bootstrap, peer, worker_->address()));
    links_[peer] = std::make_unique<UcxLink>(
        *worker_, traffic_,
        MessageHeader{.nonce = nonce_, .from = static_cast<uint32_t>(rank_)},
        collective::DescribeRank(peer, host_of_rank), std::move(address));
  }
  return inbox_.Open();
}

absl::Status UcxChannel::TryNeighbours(
    collective::Communicator& bootstrap, absl::Duration timeout,
    absl::Span<const std::string> host_of_rank) {
  std::map<int, int> messages_of;
  // A rank that has the second message of a neighbour knows that its own first
  // message has arrived. Then the connection is complete, and neither side
  // needs to do more for it.
  for (int round = 0; round < 2; ++round) {
    for (const int rank : neighbours_) HVDLITE_RETURN_IF_ERROR(Send(rank, ""));
    const absl::Status heard = worker_->ProgressUntil(
        [&] {
          bootstrap.MakeProgress();
          while (const auto message = inbox_.Take()) {
            ++messages_of[message->from];
          }
          return !status().ok() || (traffic_.sending.empty() &&
                                    absl::c_all_of(neighbours_, [&](int rank) {
                                      return messages_of[rank] > round;
                                    }));
        },
        timeout);
    HVDLITE_RETURN_IF_ERROR(status());
    if (heard.ok()) continue;
    const auto silent = absl::c_find_if(
        neighbours_, [&](int rank) { return messages_of[rank] <= round; });
    return absl::UnavailableError(
        absl::StrCat("UCX: no message from ",
                     silent == neighbours_.end()
                         ? "a neighbour"
                         : collective::DescribeRank(*silent, host_of_rank),
                     " within ", absl::FormatDuration(timeout),
                     "; select another network with UCX_NET_DEVICES"));
  }
  own_messages_ = traffic_.sent;
  return absl::OkStatus();
}

// Draws a number that no other channel has. It is the same on all ranks.
absl::StatusOr<uint64_t> DrawNonce(collective::Communicator& bootstrap) {
  uint64_t nonce = 0;
  if (bootstrap.rank() == 0) {
    std::random_device random;
    nonce = uint64_t{random()} << 32 | random();
  }
  HVDLITE_RETURN_IF_ERROR(bootstrap.Broadcast(
      {reinterpret_cast<std::byte*>(&nonce), sizeof nonce}, /*root=*/0));
  return nonce;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlChannel>> CreateUcxChannel(
    collective::Communicator& bootstrap, const UcxChannelOptions& options) {
  std::vector<int> neighbours = options.neighbours;
  std::sort(neighbours.begin(), neighbours.end());
  std::unique_ptr<UcxWorker> worker;
  absl::Status status;
  if (!neighbours.empty()) {
    auto created = UcxWorker::Create(options.transports, options.environment);
    status = created.status();
    if (created.ok()) worker = *std::move(created);
  }
  HVDLITE_RETURN_IF_ERROR(
      collective::AgreeOn(bootstrap, status, options.host_of_rank));
  HVDLITE_ASSIGN_OR_RETURN(const uint64_t nonce, DrawNonce(bootstrap));
  std::unique_ptr<UcxChannel> channel;
  if (worker != nullptr) {
    channel = std::make_unique<UcxChannel>(std::move(worker), bootstrap.rank(),
                                           bootstrap.size(), nonce, neighbours);
    status = channel->Open(bootstrap, options.host_of_rank);
    if (status.ok()) {
      status = channel->TryNeighbours(bootstrap, options.connect_timeout,
                                      options.host_of_rank);
    }
  }
  HVDLITE_RETURN_IF_ERROR(
      collective::AgreeOn(bootstrap, status, options.host_of_rank));
  return channel;
}

}  // namespace hvdlite::negotiation
