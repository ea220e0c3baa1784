#include "negotiation/channel/shm/shm_channel.h"

#include <poll.h>
#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "collective/shm/shared_memory.h"
#include "negotiation/channel/shm/shm_link.h"

namespace hvdlite::negotiation {
namespace {

constexpr int kRanksPerWord = 64;
// Looking for deaths takes a system call. So only one in this many calls of
// TryReceive that find nothing does it.
constexpr int kCallsBetweenLooks = 64;

// The layout of each rank's segment: its doorbell, the set of its senders so
// far (a bit per rank), and a ring from every rank. The ring from itself is
// unused.
class SegmentLayout {
 public:
  SegmentLayout(int size, size_t cells)
      : size_(static_cast<size_t>(size)),
        num_words_((size_ + kRanksPerWord - 1) / kRanksPerWord),
        ring_bytes_(CellRing::Bytes(cells)) {}

  size_t bytes() const { return RingOffset(size_); }

  static DoorbellPlace& Doorbell(absl::Span<std::byte> segment) {
    return *reinterpret_cast<DoorbellPlace*>(segment.data());
  }
  absl::Span<std::atomic<uint64_t>> Senders(
      absl::Span<std::byte> segment) const {
    return absl::MakeSpan(reinterpret_cast<std::atomic<uint64_t>*>(
                              segment.data() + sizeof(DoorbellPlace)),
                          num_words_);
  }
  CellRing RingFrom(int rank, absl::Span<std::byte> segment) const {
    return CellRing(
        segment.subspan(RingOffset(static_cast<size_t>(rank)), ring_bytes_));
  }

 private:
  size_t RingOffset(size_t rank) const {
    constexpr size_t kLine = 256;  // the longest cache line
    const size_t before =
        sizeof(DoorbellPlace) + num_words_ * sizeof(std::atomic<uint64_t>);
    return (before + kLine - 1) / kLine * kLine + rank * ring_bytes_;
  }

  const size_t size_;
  const size_t num_words_;
  const size_t ring_bytes_;
};
static_assert(sizeof(DoorbellPlace) % alignof(std::atomic<uint64_t>) == 0);

class ShmChannel final : public ControlChannel {
 public:
  // Creates what ranks need of each other before links can be made.
  static absl::StatusOr<std::unique_ptr<ShmChannel>> Create(
      std::unique_ptr<collective::NodeMemory> memory, SegmentLayout layout,
      const ShmChannelOptions& options);
  // Call this when all ranks have passed Create().
  absl::Status Connect();

  int rank() const override { return memory_->rank(); }
  int size() const override { return memory_->size(); }
  absl::string_view name() const override { return "SHM"; }
  std::vector<int> wake_descriptors() const override {
    return {doorbell_->descriptor(), deaths_->descriptor()};
  }

  absl::Status Send(int to, std::string bytes) override;
  absl::StatusOr<std::optional<ControlMessage>> TryReceive() override;
  uint64_t delivered() override;
  absl::Status Flush(absl::Duration timeout) override;
  bool PrepareToSleep() override;

 private:
  struct Peer {
    std::optional<ShmLink> link;
    // The word in which the peer looks for its senders.
    std::atomic<uint64_t>* senders = nullptr;
    bool has_sent_to = false;
    bool dead = false;
    std::string name;
  };

  ShmChannel(std::unique_ptr<collective::NodeMemory> memory,
             SegmentLayout layout, const ShmChannelOptions& options);

  ShmLink& link(int rank) { return *peers_[static_cast<size_t>(rank)].link; }
  // Looks for ranks that have started to send.
  void FindSenders();
  std::optional<ControlMessage> Take();
  void PushOn();
  void NoticeDeaths();
  absl::Status Death(int rank) const;
  // Arms the doorbell. Returns false if something has arrived meanwhile.
  bool Arm();
  void Sleep(absl::Duration timeout) const;

  const std::unique_ptr<collective::NodeMemory> memory_;
  const SegmentLayout layout_;
  std::unique_ptr<Doorbell> doorbell_;
  std::unique_ptr<DeathWatch> deaths_;
  std::vector<Peer> peers_;
  std::vector<uint64_t> sender_bits_;  // as last read
  std::vector<int> senders_;
  size_t next_sender_ = 0;               // the next to receive from
  uint64_t sent_ = 0;                    // messages
  std::vector<int> backlogged_;          // ranks with unsent messages
  std::deque<ControlMessage> taken_in_;  // received by Flush
  std::deque<int> unreported_;           // ranks that have died
  int calls_until_look_ = kCallsBetweenLooks;
};

ShmChannel::ShmChannel(std::unique_ptr<collective::NodeMemory> memory,
                       SegmentLayout layout, const ShmChannelOptions& options)
    : memory_(std::move(memory)), layout_(layout) {
  peers_.resize(static_cast<size_t>(size()));
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    peers_[rank].name = rank < options.rank_names.size()
                            ? options.rank_names[rank]
                            : absl::StrCat("rank ", rank);
  }
  sender_bits_.resize(layout_.Senders(memory_->segment(rank())).size());
}

absl::StatusOr<std::unique_ptr<ShmChannel>> ShmChannel::Create(
    std::unique_ptr<collective::NodeMemory> memory, SegmentLayout layout,
    const ShmChannelOptions& options) {
  std::unique_ptr<ShmChannel> channel(
      new ShmChannel(std::move(memory), layout, options));
  HVDLITE_ASSIGN_OR_RETURN(channel->doorbell_,
                           Doorbell::Create(SegmentLayout::Doorbell(
                               channel->memory_->segment(channel->rank()))));
  return channel;
}

absl::Status ShmChannel::Connect() {
  const absl::Span<std::byte> own = memory_->segment(rank());
  std::vector<pid_t> processes;
  for (int r = 0; r < size(); ++r) {
    const absl::Span<std::byte> theirs = memory_->segment(r);
    DoorbellPlace& place = SegmentLayout::Doorbell(theirs);
    processes.push_back(place.process);
    if (r == rank()) continue;
    HVDLITE_ASSIGN_OR_RETURN(DoorbellButton button,
                             DoorbellButton::Attach(place));
    Peer& peer = peers_[static_cast<size_t>(r)];
    peer.link.emplace(layout_.RingFrom(rank(), theirs),
                      layout_.RingFrom(r, own), std::move(button));
    peer.senders =
        &layout_.Senders(theirs)[static_cast<size_t>(rank() / kRanksPerWord)];
  }
  HVDLITE_ASSIGN_OR_RETURN(deaths_, DeathWatch::Create(processes));
  return absl::OkStatus();
}

absl::Status ShmChannel::Send(int to, std::string bytes) {
  Peer& peer = peers_[static_cast<size_t>(to)];
  if (!peer.has_sent_to) {
    peer.has_sent_to = true;
    peer.senders->fetch_or(uint64_t{1} << (rank() % kRanksPerWord),
                           std::memory_order_seq_cst);
  }
  const bool had_backlog = !peer.link->done();
  const bool done = peer.link->Send(std::move(bytes), ++sent_);
  if (!done && !had_backlog) backlogged_.push_back(to);
  return absl::OkStatus();
}

uint64_t ShmChannel::delivered() {
  uint64_t delivered = sent_;
  for (const int rank : backlogged_) {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    delivered = std::min(delivered, peer.link->first_waiting() - 1);
  }
  return delivered;
}

absl::StatusOr<std::optional<ControlMessage>> ShmChannel::TryReceive() {
  const Doorbell::State doorbell = doorbell_->Disarm();
  PushOn();
  if (std::optional<ControlMessage> message = Take()) return message;
  if (!unreported_.empty()) {
    // All messages of the dead rank have been taken.
    const int dead = unreported_.front();
    unreported_.pop_front();
    return Death(dead);
  }
  // A death may have woken the sleeper.
  if (doorbell == Doorbell::State::kNotRung || --calls_until_look_ == 0) {
    calls_until_look_ = kCallsBetweenLooks;
    NoticeDeaths();
  }
  return std::nullopt;
}

void ShmChannel::FindSenders() {
  const auto words = layout_.Senders(memory_->segment(rank()));
  for (size_t w = 0; w < words.size(); ++w) {
    const uint64_t bits = words[w].load(std::memory_order_seq_cst);
    for (uint64_t left = bits & ~sender_bits_[w]; left != 0; left &= left - 1) {
      senders_.push_back(static_cast<int>(w) * kRanksPerWord +
                         std::countr_zero(left));
    }
    sender_bits_[w] = bits;
  }
}

std::optional<ControlMessage> ShmChannel::Take() {
  if (!taken_in_.empty()) {
    ControlMessage message = std::move(taken_in_.front());
    taken_in_.pop_front();
    return message;
  }
  FindSenders();
  ControlMessage message;
  for (size_t i = 0; i < senders_.size(); ++i) {
    if (next_sender_ >= senders_.size()) next_sender_ = 0;
    message.from = senders_[next_sender_++];
    if (link(message.from).Receive(message.bytes)) return message;
  }
  return std::nullopt;
}

void ShmChannel::PushOn() {
  if (backlogged_.empty()) return;
  std::erase_if(backlogged_, [&](int rank) { return link(rank).PushOn(); });
}

void ShmChannel::NoticeDeaths() {
  while (const std::optional<size_t> dead = deaths_->Next()) {
    peers_[*dead].dead = true;
    unreported_.push_back(static_cast<int>(*dead));
  }
}

absl::Status ShmChannel::Death(int rank) const {
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  const DoorbellPlace& place = SegmentLayout::Doorbell(memory_->segment(rank));
  return absl::UnavailableError(absl::StrCat(
      peer.name, " has died: its process ", place.process, " has ended"));
}

bool ShmChannel::Arm() {
  doorbell_->Arm();
  for (const int rank : backlogged_) link(rank).AwaitRoom();
  FindSenders();
  for (const int rank : senders_) {
    if (link(rank).CanReceive()) return false;
  }
  for (const int rank : backlogged_) {
    if (link(rank).CanPushOn()) return false;
  }
  return true;
}

bool ShmChannel::PrepareToSleep() {
  return taken_in_.empty() && unreported_.empty() && Arm();
}

void ShmChannel::Sleep(absl::Duration timeout) const {
  pollfd watched[] = {{doorbell_->descriptor(), POLLIN, 0},
                      {deaths_->descriptor(), POLLIN, 0}};
  const timespec longest = absl::ToTimespec(timeout);
  ppoll(watched, 2, timeout == absl::InfiniteDuration() ? nullptr : &longest,
        nullptr);
}

absl::Status ShmChannel::Flush(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    PushOn();
    if (backlogged_.empty()) return absl::OkStatus();
    // A rank that waits for room here may be the one that this rank waits for.
    std::deque<ControlMessage> before = std::exchange(taken_in_, {});
    while (std::optional<ControlMessage> message = Take()) {
      before.push_back(*std::move(message));
    }
    taken_in_ = std::move(before);
    size_t num_messages = 0;
    for (const int rank : backlogged_) {
      if (peers_[static_cast<size_t>(rank)].dead) return Death(rank);
      num_messages += link(rank).num_waiting();
    }
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("control channel: ", num_messages,
                       " messages were not delivered within ",
                       absl::FormatDuration(timeout), "; the first waits for ",
                       peers_[static_cast<size_t>(backlogged_[0])].name));
    }
    if (Arm()) Sleep(left);
    if (doorbell_->Disarm() == Doorbell::State::kNotRung) NoticeDeaths();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlChannel>> CreateShmChannel(
    collective::Communicator& node, const ShmChannelOptions& options) {
  if (options.cells_per_ring < 4 ||
      !std::has_single_bit(options.cells_per_ring)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cells_per_ring is ", options.cells_per_ring,
                     "; it must be a power of two, at least 4"));
  }
  const SegmentLayout layout(node.size(), options.cells_per_ring);
  HVDLITE_ASSIGN_OR_RETURN(
      std::unique_ptr<collective::NodeMemory> memory,
      collective::NodeMemory::Create(node, layout.bytes()));
  absl::StatusOr<std::unique_ptr<ShmChannel>> channel =
      ShmChannel::Create(std::move(memory), layout, options);
  HVDLITE_RETURN_IF_ERROR(collective::AgreeOn(node, channel.status()));
  HVDLITE_RETURN_IF_ERROR(collective::AgreeOn(node, (*channel)->Connect()));
  return *std::move(channel);
}

}  // namespace hvdlite::negotiation
