// Work: a submitted operation.
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

// A handle of an operation; copies refer to the same operation. Thread-safe.
//
//   hvdlite::Work work = hvdlite::allreduce_async(tensor);
//   ... compute ...
//   const at::Tensor average = work.wait();
//
// A Work keeps the operation's tensors alive; do not use them until the
// operation is done. Destroying the Work does not cancel the operation. But an
// in-place operation on a non-contiguous tensor writes its result only when the
// program calls wait, wait_for or is_completed. If the program calls none of
// them, a small operation may run as late as in shutdown()
// (Config::min_batch_bytes).
//
// wait() blocks until the operation is done and returns its result; for
// in-place forms this is the tensor itself. It may be called again, from any
// thread. Each call throws c10::Error if the ranks' requests did not match or a
// rank could not take part, and WorldBroken if the world is lost.
//
// wait_for() blocks until the operation is done, at most for `timeout`. Returns
// whether it is done, successfully or not; does not throw the operation's
// error.
//
// is_completed() returns whether the operation is done, successfully or not,
// without blocking. Like waiting, it marks the operation as urgent.
class [[nodiscard]] Work {
 public:
  explicit Work(std::shared_ptr<internal::PendingOperation> operation);

  at::Tensor wait() const;
  bool wait_for(std::chrono::milliseconds timeout) const;
  bool is_completed() const;

 private:
  std::shared_ptr<internal::PendingOperation> operation_;
};

// A handle of a grouped operation. Like Work, but with one result per tensor of
// the group.
class [[nodiscard]] GroupWork {
 public:
  explicit GroupWork(std::shared_ptr<internal::PendingOperation> operation);

  std::vector<at::Tensor> wait() const;
  bool wait_for(std::chrono::milliseconds timeout) const;
  bool is_completed() const;

 private:
  std::shared_ptr<internal::PendingOperation> operation_;
};

// A handle of an alltoall. Like Work, but the result is
// {output, received_splits}.
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
