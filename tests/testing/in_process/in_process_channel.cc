// Control channels whose ranks are threads of one process.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "tests/testing/in_process/in_process.h"

namespace hvdlite::negotiation {
namespace {

// The messages for one rank, and a descriptor that is readable while there are
// any.
class Mailbox {
 public:
  explicit Mailbox(int descriptor) : descriptor_(descriptor) {}
  ~Mailbox() { close(descriptor_); }

  void Put(ControlMessage message) {
    base::MutexLock lock(&mutex_);
    messages_.push_back(std::move(message));
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written =
        write(descriptor_, &one, sizeof one);
  }

  std::optional<ControlMessage> Take() {
    base::MutexLock lock(&mutex_);
    if (messages_.empty()) return std::nullopt;
    ControlMessage message = std::move(messages_.front());
    messages_.pop_front();
    if (messages_.empty()) {
      uint64_t count;
      [[maybe_unused]] const ssize_t got =
          read(descriptor_, &count, sizeof count);
    }
    return message;
  }

  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
  base::Mutex mutex_;
  std::deque<ControlMessage> messages_ ABSL_GUARDED_BY(mutex_);
};

using Mailboxes = std::vector<std::unique_ptr<Mailbox>>;

class InProcessChannel final : public ControlChannel {
 public:
  InProcessChannel(int rank, std::shared_ptr<const Mailboxes> mailboxes)
      : rank_(rank), mailboxes_(std::move(mailboxes)) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(mailboxes_->size()); }
  absl::string_view name() const override { return "IN_PROCESS"; }

  absl::Status Send(int to, std::string bytes) override {
    ++sent_;
    (*mailboxes_)[to]->Put({rank_, std::move(bytes)});
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<ControlMessage>> TryReceive() override {
    return (*mailboxes_)[rank_]->Take();
  }

  uint64_t delivered() override { return sent_; }
  absl::Status Flush(absl::Duration) override { return absl::OkStatus(); }

  std::vector<int> wake_descriptors() const override {
    return {(*mailboxes_)[rank_]->descriptor()};
  }

 private:
  const int rank_;
  const std::shared_ptr<const Mailboxes> mailboxes_;
  uint64_t sent_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<ControlChannel>>>
CreateInProcessChannels(int size) {
  auto mailboxes = std::make_shared<Mailboxes>();
  for (int rank = 0; rank < size; ++rank) {
    const int descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (descriptor < 0) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "control channel: cannot create a descriptor: ",
          std::generic_category().message(errno), "; see ulimit -n"));
    }
    mailboxes->push_back(std::make_unique<Mailbox>(descriptor));
  }
  std::vector<std::unique_ptr<ControlChannel>> channels;
  for (int rank = 0; rank < size; ++rank) {
    channels.push_back(std::make_unique<InProcessChannel>(rank, mailboxes));
  }
  return channels;
}

}  // namespace hvdlite::negotiation
