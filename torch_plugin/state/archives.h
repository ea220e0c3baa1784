// Shared by commits, checkpoints and broadcasts: states in LibTorch's archives.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/checkpoint.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace hvdlite::internal {

// Logs a warning, with the rank if there is a world.
void Warn(const std::string& text);

// The text of any exception, without LibTorch's backtrace.
std::string TextOf(const std::exception& error);

// Returns the archive that `write` fills, which may have `expected_bytes`
// bytes. `what` completes "cannot write ...". Returns ResourceExhausted if
// there is too little memory. Throws what `write` throws; a c10::Error gets
// `what` in front.
absl::StatusOr<std::string> Serialise(const std::string& what,
                                      const CheckpointWrite& write,
                                      size_t expected_bytes = 0);

// The newest undamaged generation of a checkpoint. Logs a warning if that is
// the previous one. Throws as load_checkpoint() does.
struct WholeCheckpoint {
  std::string file;
  std::string bytes;
  torch::serialize::InputArchive archive;  // reads from `bytes`
};
WholeCheckpoint ReadWholeCheckpoint(const std::string& path);

template <typename Part>
void WritePart(torch::serialize::OutputArchive& archive,
               const std::string& name, const Part& part) {
  torch::serialize::OutputArchive nested(archive.compilation_unit());
  part.save(nested);
  archive.write(name, nested);
}

template <typename Part>
void ReadPart(torch::serialize::InputArchive& archive, const std::string& name,
              Part& part) {
  torch::serialize::InputArchive nested;
  archive.read(name, nested);
  part.load(nested);
}

// For example "torch::optim::SGD".
std::string KindOf(const torch::optim::Optimizer& optimizer);

// For example "Float [2, 3]".
std::string ShapeOf(const at::Tensor& tensor);

// Write and read a model's parameters and buffers under `name`, with a list of
// their shapes. ReadModel() replaces them. It throws with the name of the first
// tensor that is missing, superfluous, or of another shape or dtype, and
// changes nothing then. In archives without the list the tensors themselves are
// compared.
void WriteModel(torch::serialize::OutputArchive& archive,
                const std::string& name, const torch::nn::Module& model);
void ReadModel(torch::serialize::InputArchive& archive, const std::string& name,
               torch::nn::Module& model);

// Writes kind, state (such as momentum) and options (such as the learning
// rate). Omits state that LibTorch cannot write and the optimizer recomputes.
void WriteOptimizer(torch::serialize::OutputArchive& archive,
                    const std::string& name,
                    const torch::optim::Optimizer& optimizer);
// Replaces the state, and the options if `with_options`. Throws, and changes
// nothing, unless the archive has an optimizer of the same kind with parameters
// of the same shapes. Archives from before WriteOptimizer() wrote the kind do
// not distinguish Adam from AdamW. For an optimizer that is not LibTorch's,
// calls its save() and load(); its options are read if they have a serialize().
void ReadOptimizer(torch::serialize::InputArchive& archive,
                   const std::string& name, bool with_options,
                   torch::optim::Optimizer& optimizer);

// The destructor gives models and optimizers back their old state, unless
// Keep() was called.
class Rollback {
 public:
  Rollback() = default;
  ~Rollback();
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;

  // Use it if tensors get other memory, as by LibTorch's load(), not other
  // values in the same memory.
  void Take(torch::nn::Module& model);
  // Leaves the optimizer without state.
  void Take(torch::optim::Optimizer& optimizer);
  void Keep();

 private:
  using States = std::decay_t<
      decltype(std::declval<torch::optim::Optimizer&>().state())>;
  struct Before {
    torch::optim::Optimizer* optimizer = nullptr;
    States states;
    std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options;
  };

  std::vector<std::pair<at::Tensor, at::Tensor>> tensors_;  // with their memory
  std::vector<Before> optimizers_;
};

}  // namespace hvdlite::internal
