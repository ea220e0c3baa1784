#include "negotiation/ucx/ucx_channel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/agreement.h"
#include "negotiation/ucx/ucx_inbox.h"
#include "negotiation/ucx/ucx_link.h"
#include "negotiation/ucx/ucx_worker.h"

namespace hvdlite::negotiation {
namespace {

// How long a channel that is destroyed goes on sending, and then closing.
constexpr absl::Duration kFlushPatience = absl::Seconds(1);
constexpr absl::Duration kClosePatience = absl::Seconds(1);

class UcxChannel final : public ControlChannel {
 public:
  // `addresses`: of the workers, per rank.
  UcxChannel(std::unique_ptr<UcxWorker> worker, int rank,
             std::vector<std::string> addresses,
             absl::Span<const std::string> host_of_rank)
      : worker_(std::move(worker)),
        rank_(rank),
        inbox_(*worker_, rank, static_cast<int>(addresses.size())) {
    for (size_t r = 0; r < addresses.size(); ++r) {
      links_.push_back(std::make_unique<UcxLink>(
          *worker_, traffic_, rank,
          collective::DescribeRank(static_cast<int>(r), host_of_rank),
          std::move(addresses[r])));
    }
  }
  ~UcxChannel() override;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(links_.size()); }
  absl::string_view name() const override { return "UCX"; }
  std::vector<int> wake_descriptors() const override {
    return {worker_->descriptor()};
  }

  absl::Status Open() { return inbox_.Open(); }

  // Connects `neighbours` and exchanges a message with each.
  absl::Status TryNeighbours(absl::Span<const int> neighbours,
                             absl::Duration timeout,
                             absl::Span<const std::string> host_of_rank);

  absl::Status Send(int to, std::string bytes) override;
  absl::StatusOr<std::optional<ControlMessage>> TryReceive() override;
  uint64_t delivered() const override { return traffic_.delivered(); }
  absl::Status Flush(absl::Duration timeout) override;

 private:
  // The next message. Its sender is connected, so that its death is noticed.
  std::optional<ControlMessage> Take();
  // Why the channel is broken, if it is.
  absl::Status status() const {
    return traffic_.error.ok() ? inbox_.status() : traffic_.error;
  }

  const std::unique_ptr<UcxWorker> worker_;
  const int rank_;
  UcxTraffic traffic_;
  UcxInbox inbox_;
  std::vector<std::unique_ptr<UcxLink>>
      links_;  // per rank; that to itself idle
};

UcxChannel::~UcxChannel() {
  Flush(kFlushPatience).IgnoreError();
  for (const auto& link : links_) link->StartClose();
  const absl::Status closed = worker_->ProgressUntil(
      [&] { return traffic_.sending.empty() && traffic_.closing == 0; },
      kClosePatience);
  // UCX may still read what belongs to unfinished messages.
  if (!closed.ok()) worker_->Abandon();
}

absl::Status UcxChannel::Send(int to, std::string bytes) {
  // What is on its way may need progress: who sleeps next should try first.
  worker_->Signal();
  return links_[to]->Send(std::move(bytes));
}

std::optional<ControlMessage> UcxChannel::Take() {
  std::optional<ControlMessage> message = inbox_.Take();
  // A failure is remembered in traffic_.
  if (message.has_value()) links_[message->from]->Connect().IgnoreError();
  return message;
}

absl::StatusOr<std::optional<ControlMessage>> UcxChannel::TryReceive() {
  for (;;) {
    std::optional<ControlMessage> message = Take();
    if (message.has_value()) return message;
    if (worker_->Progress()) continue;
    HVDLITE_RETURN_IF_ERROR(status());
    HVDLITE_ASSIGN_OR_RETURN(const bool armed, worker_->Arm());
    if (armed) return std::nullopt;
  }
}

absl::Status UcxChannel::Flush(absl::Duration timeout) {
  // Not UCX's own flush, which waits for the other side to make progress.
  const absl::Status flushed =
      worker_->ProgressUntil([&] { return traffic_.sending.empty(); }, timeout);
  worker_->Signal();  // messages may have arrived
  HVDLITE_RETURN_IF_ERROR(status());
  if (absl::IsDeadlineExceeded(flushed)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "control channel: ", traffic_.sending.size(),
        " messages were not delivered within ", absl::FormatDuration(timeout)));
  }
  return flushed;
}

absl::Status UcxChannel::TryNeighbours(
    absl::Span<const int> neighbours, absl::Duration timeout,
    absl::Span<const std::string> host_of_rank) {
  std::vector<int> messages_of(links_.size());
  // Who has got the second message of a neighbour knows that its own first one
  // has arrived: the connection is complete, and needs neither side any more.
  for (int round = 0; round < 2; ++round) {
    for (const int rank : neighbours) HVDLITE_RETURN_IF_ERROR(Send(rank, ""));
    const absl::Status heard = worker_->ProgressUntil(
        [&] {
          while (const auto message = Take()) ++messages_of[message->from];
          return !status().ok() || (traffic_.sending.empty() &&
                                    absl::c_all_of(neighbours, [&](int rank) {
                                      return messages_of[rank] > round;
                                    }));
        },
        timeout);
    HVDLITE_RETURN_IF_ERROR(status());
    if (heard.ok()) continue;
    const auto silent = absl::c_find_if(
        neighbours, [&](int rank) { return messages_of[rank] <= round; });
    return absl::UnavailableError(
        absl::StrCat("UCX: no message from ",
                     silent == neighbours.end()
                         ? "a neighbour"
                         : collective::DescribeRank(*silent, host_of_rank),
                     " within ", absl::FormatDuration(timeout),
                     "; UCX_NET_DEVICES says which networks to use"));
  }
  return absl::OkStatus();
}

// What a rank tells all others at the start.
struct Introduction {
  std::vector<int> neighbours;
  std::string address;
};

std::string Pack(const Introduction& introduction) {
  const size_t count = introduction.neighbours.size();
  std::string bytes(reinterpret_cast<const char*>(&count), sizeof count);
  bytes.append(reinterpret_cast<const char*>(introduction.neighbours.data()),
               count * sizeof(int));
  return bytes + introduction.address;
}

Introduction Unpack(const std::string& bytes) {
  size_t count = 0;
  std::memcpy(&count, bytes.data(), sizeof count);
  Introduction introduction;
  introduction.neighbours.resize(count);
  if (count > 0) {
    std::memcpy(introduction.neighbours.data(), bytes.data() + sizeof count,
                count * sizeof(int));
  }
  introduction.address = bytes.substr(sizeof count + count * sizeof(int));
  return introduction;
}

bool Contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlChannel>> CreateUcxChannel(
    collective::Communicator& bootstrap, const UcxChannelOptions& options) {
  const int rank = bootstrap.rank();
  absl::StatusOr<std::unique_ptr<UcxWorker>> worker =
      UcxWorker::Create(options.transports, options.environment);
  HVDLITE_ASSIGN_OR_RETURN(
      const std::vector<std::string> introductions,
      collective::GatherOrFail(
          bootstrap,
          worker.ok() ? absl::StatusOr<std::string>(
                            Pack({options.neighbours, (*worker)->address()}))
                      : worker.status(),
          options.host_of_rank));

  std::vector<int> neighbours;
  std::vector<std::string> addresses;
  for (int r = 0; r < bootstrap.size(); ++r) {
    Introduction introduction = Unpack(introductions[r]);
    if (r != rank && (Contains(options.neighbours, r) ||
                      Contains(introduction.neighbours, rank))) {
      neighbours.push_back(r);
    }
    addresses.push_back(std::move(introduction.address));
  }
  auto channel = std::make_unique<UcxChannel>(
      *std::move(worker), rank, std::move(addresses), options.host_of_rank);
  absl::Status status = channel->Open();
  if (status.ok()) {
    status = channel->TryNeighbours(neighbours, options.connect_timeout,
                                    options.host_of_rank);
  }
  HVDLITE_RETURN_IF_ERROR(
      collective::AgreeOn(bootstrap, status, options.host_of_rank));
  return channel;
}

}  // namespace hvdlite::negotiation
