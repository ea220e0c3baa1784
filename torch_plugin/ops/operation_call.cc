#include "torch_plugin/ops/operation_call.h"

#include <ATen/core/grad_mode.h>

#include <cstdio>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "torch_plugin/ops/tensors.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

// Most calls that a world keeps: several times the number of automatic names of
// a kind.
constexpr size_t kMaxKept = 256;

// Resets `request` but keeps its allocated memory.
void Clear(negotiation::Request& request) {
  negotiation::Request cleared;
  cleared.name = std::move(request.name);
  cleared.process_set = request.process_set;
  cleared.tensors = std::move(request.tensors);
  request = std::move(cleared);
}

}  // namespace

OperationCall::KeptCalls& OperationCall::KeptOf(World& world) {
  return *static_cast<KeptCalls*>(
      world.Companion([] { return std::make_shared<KeptCalls>(kMaxKept); }));
}

void OperationCall::PutBack() {
  kept_->persistent.Release();
  Clear(call().request);
  const Kept& kept = *kept_;
  KeptOf(*world_).Put(kept.name, members_.id, std::move(kept_));
}

OperationCall::OperationCall(absl::string_view kind, const std::string& name,
                             const ProcessSet& process_set)
    : world_(CurrentWorld()),
      members_(ValueOrThrow(MembersOf(*world_, process_set.state(), kind))) {
  absl::string_view known = name;
  char automatic[64];
  if (name.empty()) {
    // Count the call before any check fails, so that later names still agree.
    const int64_t number =
        world_->NextNumber(kind, members_.id) % kAutomaticNames;
    const int length = std::snprintf(
        automatic, sizeof automatic, "%.*s.noname.%d",
        static_cast<int>(kind.size()), kind.data(), static_cast<int>(number));
    known = {automatic, static_cast<size_t>(length)};
  } else {
    ThrowIfError(CheckName(name, kind));
  }
  kept_ = KeptOf(*world_).Take(known, members_.id);
  if (kept_ == nullptr) name_ = std::string(known);
}

void OperationCall::SetRequest(negotiation::Request request) {
  request.name = std::move(call().request.name);
  request.tensors = std::move(call().request.tensors);
  call().request = std::move(request);
}

void OperationCall::SetLocalError(std::string reason) {
  if (request().local_error.empty()) request().local_error = std::move(reason);
}

void OperationCall::SetLocalError(at::TensorList tensors,
                                  const at::Tensor& tensor,
                                  std::string reason) {
  if (tensors.size() > 1) {
    reason = absl::StrCat("tensor ", &tensor - tensors.data(), " of ",
                          tensors.size(), ": ", reason);
  }
  SetLocalError(std::move(reason));
}

void OperationCall::Prepare(absl::FunctionRef<void()> prepare) {
  if (!request().local_error.empty()) return;
  try {
    prepare();
  } catch (const c10::Error& error) {
    SetLocalError(error.what_without_backtrace());
  } catch (const std::exception& error) {
    SetLocalError(error.what());
  }
}

void OperationCall::Prepare(
    at::TensorList tensors, Rows rows,
    absl::FunctionRef<void(const at::Tensor&)> prepare) {
  Prepare([&] {
    for (const at::Tensor& tensor : tensors) {
      std::string local_error = TensorError(tensor);
      if (local_error.empty() && rows == Rows::kNeeded && tensor.dim() == 0) {
        local_error =
            "the tensor has no dimensions and hence no rows; pass "
            "tensor.unsqueeze(0)";
      }
      if (!local_error.empty())
        return SetLocalError(tensors, tensor, std::move(local_error));
      prepare(tensor);
      if (!request().local_error.empty()) return;
    }
  });
}

negotiation::TensorSpec& OperationCall::NextSpec() {
  negotiation::TensorSpecs& specs = request().tensors;
  if (tensors_ == specs.size()) specs.emplace_back();
  return specs[tensors_++];
}

void OperationCall::Add(const at::Tensor& like, OperationTensors tensors) {
  negotiation::TensorSpec& spec = NextSpec();
  spec.dtype = DataTypeOf(like);
  spec.shape.assign(like.sizes().begin(), like.sizes().end());
  spec.strides.clear();
  call().tensors.push_back(std::move(tensors));
}

void OperationCall::AddRows(const at::Tensor& tensor) {
  Add(tensor, {.input = RowMajor(tensor), .output = {}, .result = {}});
  negotiation::TensorSpec& spec = request().tensors[tensors_ - 1];
  call().rows.push_back(spec.shape.front());
  spec.shape.front() = negotiation::kAnyLength;
}

void OperationCall::AddSplitRows(const at::Tensor& tensor,
                                 std::vector<int64_t> splits,
                                 at::ScalarType splits_dtype) {
  AddRows(tensor);
  call().rows = std::move(splits);
  call().splits_dtype = splits_dtype;
}

void OperationCall::Complete() {
  if (!request().local_error.empty()) {
    tensors_ = 0;
    call().tensors.clear();
    call().rows.clear();
  }
  request().tensors.resize(tensors_);
  request().process_set = members_.id;
}

std::shared_ptr<PendingOperation> OperationCall::Submit(Submission submission) {
  Complete();
  if (kept_ != nullptr) {
    call_ = call();
    PutBack();
  } else {
    request().name = NameInSet(std::move(name_), members_.id);
  }
  return PendingOperation::Submit(std::move(world_), std::move(call_),
                                  submission);
}

std::shared_ptr<PendingOperation> OperationCall::Run() {
  std::shared_ptr<PendingOperation> operation =
      Submit(Submission::kSynchronous);
  ThrowIfError(operation->Wait());
  return operation;
}

PendingOperation::Tensors OperationCall::RunKept() {
  Complete();
  if (kept_ == nullptr) {
    request().name = NameInSet(name_, members_.id);
    kept_ = std::make_unique<Kept>(
        Kept{std::move(name_),
             PersistentCall(std::move(call_), negotiation::Owner::kAny)});
  }
  PersistentCall* const persistent = &kept_->persistent;
  absl::Status status = persistent->Load(*world_);
  if (status.ok()) {
    status = PersistentCall::Submit(*world_, {&persistent, 1},
                                    Submission::kSynchronous);
  }
  if (status.ok()) status = WaitInTimeline(*world_, persistent->completion());
  if (status.ok()) status = persistent->Deliver();
  PendingOperation::Tensors tensors = call().tensors;
  PutBack();
  ThrowIfError(status);
  return tensors;
}

bool RecordsGradients(at::TensorList tensors) {
  if (!at::GradMode::is_enabled()) return false;
  bool records = false;
  for (const at::Tensor& tensor : tensors) {
    // The call will fail; autograd must not interfere.
    if (!tensor.defined()) return false;
    records = records || tensor.requires_grad();
  }
  return records;
}

}  // namespace hvdlite::internal
