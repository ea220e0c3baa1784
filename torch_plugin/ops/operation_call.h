// OperationCall: one call of a public operation, from its options to the
// submitted request.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/process_set.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "negotiation/protocol/request.h"
#include "negotiation/world/process_set.h"
#include "negotiation/world/world.h"
#include "torch_plugin/ops/kept_by_name.h"
#include "torch_plugin/ops/pending_operation.h"
#include "torch_plugin/ops/persistent_call.h"

namespace hvdlite::internal {

// Whether a tensor needs a first dimension.
enum class Rows { kNotNeeded, kNeeded };

// Every operation uses it like this:
//
//   OperationCall call("allgather", options.name(), options.process_set());
//   call.request().collective = negotiation::Collective::kAllgather;
//   call.Prepare(tensors, Rows::kNeeded, [&](const at::Tensor& tensor) {
//     call.AddRows(tensor);
//   });
//   return call.Submit(Submission::kAsynchronous);
//
// An error that concerns only this rank becomes the request's local error. The
// operation is submitted nevertheless and fails with this error on every rank
// of the process set. Otherwise the other ranks would wait for it.
class OperationCall {
 public:
  // This many unnamed operations of a kind can be in flight and run together.
  // Later ones run one after the other. The number has many divisors, so that
  // each unnamed operation of a training step gets the same names again in
  // later steps.
  static constexpr int kAutomaticNames = 60;

  // Replaces an empty `name` by an automatic one, "<kind>.noname.<N>". The
  // calls of a kind use kAutomaticNames names in turn. The name depends only on
  // the order of calls, so it is the same on all ranks. Throws c10::Error for
  // errors that concern this rank only: no world, a process set without this
  // rank, a reserved name.
  OperationCall(absl::string_view kind, const std::string& name,
                const ProcessSet& process_set);

  // The name that the user knows. Not after Submit().
  const std::string& name() const { return kept_ ? kept_->name : name_; }
  const World& world() const { return *world_; }
  const Members& members() const { return members_; }

  // Other functions fill in name, process set and tensors.
  negotiation::Request& request() { return call().request; }
  void SetRequest(negotiation::Request request);

  // Only the first local error is kept.
  void SetLocalError(std::string reason);
  // Sets a local error about `tensor`, with its index if it is one of a group.
  void SetLocalError(at::TensorList tensors, const at::Tensor& tensor,
                     std::string reason);

  // Calls `prepare` unless there is a local error. An exception of `prepare`
  // becomes a local error.
  void Prepare(absl::FunctionRef<void()> prepare);
  // Does the same for each tensor after checking that it is supported.
  void Prepare(at::TensorList tensors, Rows rows,
               absl::FunctionRef<void(const at::Tensor&)> prepare);
  // `like` has the tensors' shape and dtype. Tensors are row-major.
  void Add(const at::Tensor& like, OperationTensors tensors);
  // Like Add, for an allgather: adds the tensor's rows. Their number may differ
  // by rank.
  void AddRows(const at::Tensor& tensor);
  // The same for an alltoall's tensor, with the number of rows for each member
  // and the dtype of received_splits.
  void AddSplitRows(const at::Tensor& tensor, std::vector<int64_t> splits,
                    at::ScalarType splits_dtype);

  // May be called once. Throws the errors of PendingOperation::TrySubmit.
  std::shared_ptr<PendingOperation> Submit(Submission submission);
  // The same, but blocks until the operation is done. Throws its error.
  std::shared_ptr<PendingOperation> Run();
  // The same for kinds that can be persistent. Returns the tensors with their
  // results. Keeps the persistent call for the next call of this name, which
  // then allocates nothing for tensors of the same form.
  PendingOperation::Tensors RunKept();

 private:
  // Kept in the world for the next call of the same name.
  struct Kept {
    std::string name;  // the name that the user knows
    PersistentCall persistent;
  };
  using KeptCalls = KeptByName<Kept>;

  static KeptCalls& KeptOf(World& world);
  // Keeps kept_, without its tensors, for the next call of its name.
  void PutBack();

  PendingOperation::Call& call() {
    return kept_ ? kept_->persistent.call() : call_;
  }
  // Returns the entry of the next tensor, which may still hold that of the last
  // call.
  negotiation::TensorSpec& NextSpec();
  // The request as it is submitted, except for its name.
  void Complete();

  std::shared_ptr<World> world_;
  Members members_;
  // Kept from the last call of this name. Null: there is none. Otherwise name_
  // and call_ are not used.
  std::unique_ptr<Kept> kept_;
  std::string name_;
  PendingOperation::Call call_;
  size_t tensors_ = 0;  // how many tensors of the request belong to this call
};

// Whether autograd records operations on the tensors.
bool RecordsGradients(at::TensorList tensors);

// hvdlite::allgather_object() with a name for the operation. The entry of a
// rank that has joined is "".
std::vector<std::string> AllgatherObject(const std::string& name,
                                         const std::string& bytes,
                                         const ProcessSet& process_set);

}  // namespace hvdlite::internal
