// broadcast_object() and allgather_object(): bytes whose length may differ.
#include <ATen/Functions.h>
#include <hvdlite/ops.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "torch_plugin/ops/operation_call.h"
#include "torch_plugin/ops/tensor_checks.h"

namespace hvdlite {
namespace {

const char* CharactersOf(const at::Tensor& bytes) {
  return static_cast<const char*>(bytes.data_ptr());
}

// A tensor of `length` bytes that starts with `bytes`.
at::Tensor TensorOf(const std::string& bytes, int64_t length) {
  at::Tensor tensor = at::empty({length}, at::kByte);
  if (!bytes.empty()) {
    std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  }
  return tensor;
}

}  // namespace

std::string broadcast_object(const std::string& bytes, int root_rank,
                             const ProcessSet& process_set) {
  internal::OperationCall call("broadcast_object", /*name=*/"", process_set);
  const at::Tensor length = broadcast_(
      at::full({}, static_cast<int64_t>(bytes.size()), at::kLong), root_rank,
      BroadcastOptions()
          .name(absl::StrCat(call.name(), ".length"))
          .process_set(process_set));
  call.request().collective = negotiation::Collective::kBroadcast;
  call.request().root_rank = root_rank;
  at::Tensor content;
  call.Prepare([&] {
    const bool is_root = call.world().topology().rank == root_rank;
    content = TensorOf(is_root ? bytes : "", length.item<int64_t>());
    call.Add(internal::RowMajorSpec(content),
             {.input = content, .output = content, .result = content});
  });
  call.Run();
  return {CharactersOf(content), content.nbytes()};
}

std::vector<std::string> allgather_object(const std::string& bytes,
                                          const ProcessSet& process_set) {
  internal::OperationCall call("allgather_object", /*name=*/"", process_set);
  call.request().collective = negotiation::Collective::kAllgather;
  call.Prepare([&] {
    call.AddRows(TensorOf(bytes, static_cast<int64_t>(bytes.size())));
  });
  const auto operation = call.Run();
  std::vector<std::string> objects;
  const char* next = CharactersOf(operation->result());
  for (const int64_t length : operation->rows().front()) {
    objects.emplace_back(next, static_cast<size_t>(length));
    next += length;
  }
  return objects;
}

}  // namespace hvdlite
