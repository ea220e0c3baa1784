#include "tools/hvdlite_bench/contender.h"

#include <ATen/ATen.h>
#include <hvdlite/hvdlite.h>

#include <limits>
#include <numeric>

#include "tools/hvdlite_bench/resnet50_gradients.h"

namespace hvdlite::tools {

std::vector<Workload> StandardWorkloads() {
  return {
      {"resnet50", "ResNet50's 161 gradients", Resnet50GradientElements(), 1},
      {"one_4_bytes", "one 4-byte tensor", {1}, 20},
      {"1000_of_1_kb", "1000 tensors of 1 KB",
       std::vector<int64_t>(1000, 1024 / sizeof(float)), 1},
  };
}

int64_t TotalBytes(const Workload& workload) {
  return std::accumulate(workload.elements.begin(), workload.elements.end(),
                         int64_t{0}) *
         static_cast<int64_t>(sizeof(float));
}

HvdliteContender::HvdliteContender(const Workload& workload) {
  for (size_t i = 0; i < workload.elements.size(); ++i) {
    names_.push_back(workload.name + "." + std::to_string(i));
    tensors_.push_back(at::zeros({workload.elements[i]}, at::kFloat));
  }
}

void HvdliteContender::Fill(float value) {
  for (at::Tensor& tensor : tensors_) tensor.fill_(value);
}

void HvdliteContender::Run() {
  std::vector<Work> works;
  works.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    works.push_back(allreduce_async_(
        tensors_[i], AllreduceOptions().name(names_[i]).op(ReduceOp::Sum)));
  }
  for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
}

bool HvdliteContender::AllEqual(float value) const {
  for (const at::Tensor& tensor : tensors_) {
    if (!tensor.eq(value).all().item<bool>()) return false;
  }
  return true;
}

MpiContender::MpiContender(const Workload& workload, MPI_Comm communicator)
    : communicator_(communicator),
      buffer_(at::zeros(
          {TotalBytes(workload) / static_cast<int64_t>(sizeof(float))},
          at::kFloat)) {
  TORCH_CHECK(buffer_.numel() <= std::numeric_limits<int>::max(), "workload ",
              workload.name, " has too many elements for one MPI_Allreduce: ",
              buffer_.numel());
}

void MpiContender::Fill(float value) { buffer_.fill_(value); }

void MpiContender::Run() {
  const int error = MPI_Allreduce(MPI_IN_PLACE, buffer_.data_ptr<float>(),
                                  static_cast<int>(buffer_.numel()), MPI_FLOAT,
                                  MPI_SUM, communicator_);
  TORCH_CHECK(error == MPI_SUCCESS, "MPI_Allreduce failed with code ", error);
}

bool MpiContender::AllEqual(float value) const {
  return buffer_.eq(value).all().item<bool>();
}

}  // namespace hvdlite::tools
