#include "torch_plugin/ops/operation_call.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "torch_plugin/ops/tensors.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {

OperationCall::OperationCall(absl::string_view kind, const std::string& name,
                             const ProcessSet& process_set)
    : world_(CurrentWorld()),
      members_(ValueOrThrow(MembersOf(*world_, process_set.state(), kind))) {
  if (name.empty()) {
    // Counted before anything is refused, so that later names still agree.
    name_ = world_->NextName(std::string(kind), members_.id);
  } else {
    ThrowIfError(CheckName(name, kind));
    name_ = name;
  }
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

void OperationCall::Add(negotiation::TensorSpec spec,
                        OperationTensors tensors) {
  request().tensors.push_back(std::move(spec));
  call_.tensors.push_back(std::move(tensors));
}

void OperationCall::AddRows(const at::Tensor& tensor) {
  negotiation::TensorSpec spec = RowMajorSpec(tensor);
  call_.rows.push_back(spec.shape.front());
  spec.shape.front() = negotiation::kAnyLength;
  Add(std::move(spec), {.input = RowMajor(tensor), .output = {}, .result = {}});
}

void OperationCall::AddSplitRows(const at::Tensor& tensor,
                                 std::vector<int64_t> splits,
                                 at::ScalarType splits_dtype) {
  AddRows(tensor);
  call_.rows = std::move(splits);
  call_.splits_dtype = splits_dtype;
}

std::shared_ptr<PendingOperation> OperationCall::Submit(Submission submission) {
  if (!request().local_error.empty()) {
    request().tensors.clear();
    call_.tensors.clear();
    call_.rows.clear();
  }
  request().name = NameInSet(std::move(name_), members_.id);
  request().process_set = members_.id;
  return PendingOperation::Submit(std::move(world_), std::move(call_),
                                  submission);
}

std::shared_ptr<PendingOperation> OperationCall::Run() {
  std::shared_ptr<PendingOperation> operation =
      Submit(Submission::kSynchronous);
  ThrowIfError(operation->Wait());
  return operation;
}

bool RecordsGradients(at::TensorList tensors) {
  if (!at::GradMode::is_enabled()) return false;
  bool records = false;
  for (const at::Tensor& tensor : tensors) {
    // To be refused, which autograd must not get in the way of.
    if (!tensor.defined()) return false;
    records = records || tensor.requires_grad();
  }
  return records;
}

}  // namespace hvdlite::internal
