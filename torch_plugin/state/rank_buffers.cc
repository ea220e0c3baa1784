#include "torch_plugin/state/rank_buffers.h"

#include <ATen/Functions.h>
#include <ATen/core/List.h>
#include <hvdlite/ops.h>
#include <hvdlite/world.h>
#include <torch/types.h>

#include <cstring>
#include <functional>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "torch_plugin/state/copy_to.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::elastic {
namespace {

using Models = std::vector<torch::nn::Module*>;

constexpr char kArchive[] = "buffers_of_ranks";
constexpr char kPlaces[] = "places";
constexpr char kBytes[] = "bytes";

std::vector<at::Tensor> BuffersOf(const Models& models) {
  std::vector<at::Tensor> all;
  for (const torch::nn::Module* model : models) {
    for (at::Tensor& buffer : model->buffers()) all.push_back(std::move(buffer));
  }
  return all;
}

// Returns the indices of buffers that differ between ranks, in order.
// Collective.
std::vector<int64_t> PlacesThatDiffer(const std::vector<at::Tensor>& buffers,
                                      const std::string& name) {
  const auto count = static_cast<int64_t>(buffers.size());
  // The maximum of the complements gives the minimum.
  at::Tensor hashes = at::empty({2, count}, at::kLong);
  auto* const numbers = hashes.data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const at::Tensor values = buffers[static_cast<size_t>(i)].contiguous();
    const std::string_view bytes(static_cast<const char*>(values.data_ptr()),
                                 values.nbytes());
    numbers[i] =
        static_cast<int64_t>(std::hash<std::string_view>()(bytes));
    numbers[count + i] = ~numbers[i];
  }
  hashes = allreduce(hashes, AllreduceOptions()
                                 .op(ReduceOp::Max)
                                 .name(absl::StrCat(name, ".hashes")));
  const auto* const largest = hashes.data_ptr<int64_t>();
  std::vector<int64_t> places;
  for (int64_t i = 0; i < count; ++i) {
    if (largest[i] != ~largest[count + i]) places.push_back(i);
  }
  return places;
}

}  // namespace

RankBuffers RankBuffers::Gather(const Models& models, const std::string& name,
                                bool everywhere) {
  RankBuffers gathered;
  const std::vector<at::Tensor> buffers = BuffersOf(models);
  if (buffers.empty() || size() == 1) return gathered;
  const torch::NoGradGuard no_grad;
  gathered.places_ = PlacesThatDiffer(buffers, name);
  if (gathered.places_.empty()) return gathered;
  int64_t length = 0;
  for (const int64_t place : gathered.places_) {
    length += static_cast<int64_t>(buffers[static_cast<size_t>(place)].numel() *
                                   buffers[static_cast<size_t>(place)]
                                       .element_size());
  }
  const at::Tensor own = at::empty({length}, at::kByte);
  auto* next = own.data_ptr<uint8_t>();
  for (const int64_t place : gathered.places_) {
    const at::Tensor values = buffers[static_cast<size_t>(place)].contiguous();
    std::memcpy(next, values.data_ptr(), values.nbytes());
    next += values.nbytes();
  }
  const std::string operation = absl::StrCat(name, ".bytes");
  at::Tensor all;
  if (everywhere) {
    all = allgather(own, AllgatherOptions().name(operation));
  } else {
    at::Tensor splits = at::zeros({size()}, at::kLong);
    splits[0] = length;
    all = std::get<0>(
        alltoall(own, splits, AlltoallOptions().name(operation)));
    if (rank() != 0) return {};
  }
  gathered.bytes_ = all.view({size(), length});
  return gathered;
}

void RankBuffers::Write(torch::serialize::OutputArchive& archive) const {
  if (places_.empty()) return;
  torch::serialize::OutputArchive nested(archive.compilation_unit());
  nested.write(kPlaces, c10::IValue(c10::List<int64_t>(places_)));
  nested.write(kBytes, bytes_);
  archive.write(kArchive, nested);
}

RankBuffers RankBuffers::Read(torch::serialize::InputArchive& archive) {
  RankBuffers read;
  torch::serialize::InputArchive nested;
  if (!archive.try_read(kArchive, nested)) return read;
  c10::IValue places;
  nested.read(kPlaces, places);
  read.places_ = places.toIntVector();
  nested.read(kBytes, read.bytes_);
  return read;
}

void RankBuffers::Restore(const Models& models) const {
  if (places_.empty() || bytes_.size(0) != size()) return;
  const std::vector<at::Tensor> buffers = BuffersOf(models);
  const at::Tensor own = bytes_[rank()].contiguous();
  const auto* next = own.data_ptr<uint8_t>();
  auto left = static_cast<size_t>(own.numel());
  const torch::NoGradGuard no_grad;
  for (const int64_t place : places_) {
    at::Tensor values;
    if (place >= 0 && place < static_cast<int64_t>(buffers.size())) {
      const at::Tensor& buffer = buffers[static_cast<size_t>(place)];
      values = at::empty(buffer.sizes(), buffer.scalar_type());
    }
    if (!values.defined() || values.nbytes() > left) {
      internal::ThrowError(
          "the saved buffers of the ranks belong to another model");
    }
    std::memcpy(values.data_ptr(), next, values.nbytes());
    next += values.nbytes();
    left -= values.nbytes();
    internal::CopyTo(buffers[static_cast<size_t>(place)], values);
  }
}

}  // namespace hvdlite::elastic
