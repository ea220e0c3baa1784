// OperationCall: one call of a public operation, from its options to what is
// submitted.
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

// The way of every operation:
//
//   OperationCall call("allgather", options.name(), options.process_set());
//   call.request().collective = negotiation::Collective::kAllgather;
//   call.Prepare(tensors, Rows::kNeeded, [&](const at::Tensor& tensor) {
//     call.AddRows(tensor);
//   });
//   return call.Submit(Submission::kAsynchronous);
//
// Whatever is wrong on this rank alone becomes the request's local error: the
// operation is submitted all the same, and fails with that reason on every rank
// of the process set, rather than leave the others waiting.
class OperationCall {
 public:
  // As many unnamed operations of a kind can be in flight, and run together, at
  // once; those behind them follow one by one. With so many divisors, that each
  // of the unnamed operations of a training step returns to the same names.
  static constexpr int kAutomaticNames = 60;

  // An empty `name` is replaced by an automatic one, "<kind>.noname.<N>": the
  // calls of a kind take kAutomaticNames in turn, which follows from the order
  // of calls alone, so that it is the same on all ranks, whatever is waited for
  // when and where. Throws c10::Error what concerns this rank alone: no world,
  // a process set that this rank is not in, a reserved name.
  OperationCall(absl::string_view kind, const std::string& name,
                const ProcessSet& process_set);

  // As the user knows it. Not after Submit().
  const std::string& name() const { return kept_ ? kept_->name : name_; }
  const World& world() const { return *world_; }
  const Members& members() const { return members_; }

  // Name, process set and tensors are filled in by other calls.
  negotiation::Request& request() { return call().request; }
  void SetRequest(negotiation::Request request);

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
  // `like` has the tensors' shape and dtype; they are row-major.
  void Add(const at::Tensor& like, OperationTensors tensors);
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
  // As above, for kinds that can be persistent; returns the tensors with
  // their results. The persistent call is left behind for the next call of the
  // name: from then on, of tensors that look alike, nothing is allocated here.
  PendingOperation::Tensors RunKept();

 private:
  // What a call of a name leaves behind in its world.
  struct Kept {
    std::string name;  // as the user knows it
    PersistentCall persistent;
  };
  using KeptCalls = KeptByName<Kept>;

  static KeptCalls& KeptOf(World& world);
  // Keeps kept_ for the next call of its name, without its tensors.
  void PutBack();

  PendingOperation::Call& call() {
    return kept_ ? kept_->persistent.call() : call_;
  }
  // The next tensor's; the last call's may lie there.
  negotiation::TensorSpec& NextSpec();
  // The request is as it is submitted, but for the name.
  void Complete();

  std::shared_ptr<World> world_;
  Members members_;
  // Of the last call of this name; null: there is none. Else name_ and call_
  // are not used.
  std::unique_ptr<Kept> kept_;
  std::string name_;
  PendingOperation::Call call_;
  size_t tensors_ = 0;  // of the request that are this call's
};

// Whether autograd records what is done with the tensors.
bool RecordsGradients(at::TensorList tensors);

// hvdlite::allgather_object(), with a name of the operation; of a rank that has
// joined "".
std::vector<std::string> AllgatherObject(const std::string& name,
                                         const std::string& bytes,
                                         const ProcessSet& process_set);

}  // namespace hvdlite::internal
