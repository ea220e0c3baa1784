// Work: an operation that was submitted.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <tuple>
#include <vector>

namespace hvdlite {

namespace internal {
class PendingOperation;
}  // namespace internal

// A handle; copies denote the same operation. Thread-safe. The operation's
// tensors are kept alive by it, and must not be used until it is done. Dropping
// it does not cancel the operation, but an in-place operation on a
// non-contiguous tensor delivers its result only to who asks (wait, wait_for or
// is_completed). A small operation that nobody waits for may run as late as
// shutdown() (Config::min_batch_bytes).
//
// wait() blocks until the operation is done and returns its result: the tensor
// itself for in-place forms. May be called again, from any thread. Throws
// c10::Error if the ranks disagreed about the operation or one of them could
// not take part, WorldBroken if the world is lost; each time.
//
// wait_for() blocks until the operation is done, but for at most `timeout`.
// Returns whether it is done, with success or without; does not throw its
// error.
//
// is_completed(): whether it is done, with success or without. Does not block.
// Asking tells the other ranks that somebody waits, as waiting does.
class [[nodiscard]] Work {
 public:
  explicit Work(std::shared_ptr<internal::PendingOperation> operation);

  at::Tensor wait() const;
  bool wait_for(std::chrono::milliseconds timeout) const;
  bool is_completed() const;

 private:
  std::shared_ptr<internal::PendingOperation> operation_;
};

// A grouped operation; as Work, but with a result per tensor of the group.
class [[nodiscard]] GroupWork {
 public:
  explicit GroupWork(std::shared_ptr<internal::PendingOperation> operation);

  std::vector<at::Tensor> wait() const;
  bool wait_for(std::chrono::milliseconds timeout) const;
  bool is_completed() const;

 private:
  std::shared_ptr<internal::PendingOperation> operation_;
};

// As Work, but the result is {output, received_splits}.
class [[nodiscard]] AlltoallWork {
 public:
  explicit AlltoallWork(std::shared_ptr<internal::PendingOperation> operation);

  std::tuple<at::Tensor, at::Tensor> wait() const;
  bool wait_for(std::chrono::milliseconds timeout) const;
  bool is_completed() const;

 private:
  std::shared_ptr<internal::PendingOperation> operation_;
};

}  // namespace hvdlite
