// OperationCall: one call of a public operation, from its options to what is
// submitted.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/process_set.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "negotiation/protocol/request.h"
#include "negotiation/world/process_set.h"
#include "negotiation/world/world.h"
#include "torch_plugin/ops/pending_operation.h"

namespace hvdlite::internal {

// Whether a tensor needs a first dimension.
enum class Rows { kNotNeeded, kNeeded };

// The way of every operation:
//
//   OperationCall call("allgather", options.name(), options.process_set());
//   call.request().collective = negotiation::Collective::kAllgather;
//   call.Prepare(tensors, Rows::kNeeded, [&](const at::Tensor& tensor) {
//     call.Add(spec, {.input = ..., .output = ..., .result = ...});
//   });
//   return call.Submit(Submission::kAsynchronous);
//
// Whatever is wrong on this rank alone becomes the request's local error: the
// operation is submitted all the same, and fails with that reason on every rank
// of the process set, rather than leave the others waiting.
class OperationCall {
 public:
  // An empty `name` is replaced by the next automatic one, for `kind`. Throws
  // c10::Error what concerns this rank alone: no world, a process set that this
  // rank is not in, a reserved name.
  OperationCall(absl::string_view kind, const std::string& name,
                const ProcessSet& process_set);

  // As the user knows it. Not after Submit().
  const std::string& name() const { return name_; }
  const World& world() const { return *world_; }
  const Members& members() const { return members_; }

  // Name and process set are filled in by Submit().
  negotiation::Request& request() { return call_.request; }

  // The first local error counts.
  void SetLocalError(std::string reason);
  // Refuses `tensor`, naming its place if it is one of a group.
  void SetLocalError(at::TensorList tensors, const at::Tensor& tensor,
                     std::string reason);

  // Calls `prepare` unless something has a local error; what it throws becomes
  // a local error.
  void Prepare(absl::FunctionRef<void()> prepare);
  // As above for each of the tensors, once it is known to be supported.
  void Prepare(at::TensorList tensors, Rows rows,
               absl::FunctionRef<void(const at::Tensor&)> prepare);
  void Add(negotiation::TensorSpec spec, OperationTensors tensors);
  // As Add, for an allgather: the tensor's rows, of which ranks have as many as
  // they like.
  void AddRows(const at::Tensor& tensor);
  // As above, for an alltoall's tensor, with the rows that go to each member
  // and the dtype of received_splits.
  void AddSplitRows(const at::Tensor& tensor, std::vector<int64_t> splits,
                    at::ScalarType splits_dtype);

  // Once. Errors: as PendingOperation::TrySubmit, thrown.
  std::shared_ptr<PendingOperation> Submit(Submission submission);
  // As above; returns when it is done. Throws its error.
  std::shared_ptr<PendingOperation> Run();

 private:
  std::shared_ptr<World> world_;
  Members members_;
  std::string name_;
  PendingOperation::Call call_;
};

// Whether autograd records what is done with the tensors.
bool RecordsGradients(at::TensorList tensors);

// hvdlite::allgather_object(), with a name of the operation; of a rank that has
// joined "".
std::vector<std::string> AllgatherObject(const std::string& name,
                                         const std::string& bytes,
                                         const ProcessSet& process_set);

}  // namespace hvdlite::internal
