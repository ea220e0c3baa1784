// Work: an operation that was submitted.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>

namespace hvdlite {

namespace internal {
class PendingOperation;
}  // namespace internal

// A handle; copies denote the same operation. Thread-safe. The operation's
// tensors are kept alive by it, and must not be used until it is done. Dropping
// it does not cancel the operation, but an in-place operation on a
// non-contiguous tensor delivers its result only to who asks (wait, wait_for or
// is_completed).
class [[nodiscard]] Work {
 public:
  explicit Work(std::shared_ptr<internal::PendingOperation> operation);

  // Blocks until the operation is done and returns its result: the tensor
  // itself for in-place forms. May be called again, from any thread. Throws
  // c10::Error if the ranks disagreed about the operation, WorldBroken if the
  // world is lost; each time.
  at::Tensor wait() const;

  // Blocks until the operation is done, but for at most `timeout`. Returns
  // whether it is done, with success or without; does not throw its error.
  bool wait_for(std::chrono::milliseconds timeout) const;

  // Whether it is done, with success or without. Does not block. Asking tells
  // the other ranks that somebody waits, as waiting does.
  bool is_completed() const;

 private:
  std::shared_ptr<internal::PendingOperation> operation_;
};

}  // namespace hvdlite
