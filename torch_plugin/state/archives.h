// What commits, checkpoints and broadcasts have in common: states as archives
// of LibTorch's.
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

// A warning, with the rank if there is a world.
void Warn(const std::string& text);

// The text of any exception, without LibTorch's backtrace.
std::string TextOf(const std::exception& error);

// The archive that `write` fills, which may have `expected_bytes`. `what`
// completes "cannot write ...". ResourceExhausted where memory does not
// suffice; throws what `write` throws, a c10::Error with `what` before it.
absl::StatusOr<std::string> Serialise(const std::string& what,
                                      const CheckpointWrite& write,
                                      size_t expected_bytes = 0);

// The newest whole generation of a checkpoint; warns where that is the one
// before. Throws as load_checkpoint() does.
struct WholeCheckpoint {
  std::string file;
  std::string bytes;
  torch::serialize::InputArchive archive;  // of these
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

// "torch::optim::SGD".
std::string KindOf(const torch::optim::Optimizer& optimizer);

// "Float [2, 3]".
std::string ShapeOf(const at::Tensor& tensor);

// A model's parameters and buffers under `name`, and beside them a list of what
// these are. ReadModel() replaces them. Throws, naming the first tensor that is
// missing, superfluous, or of another shape or dtype, with nothing changed.
// Archives without the list are compared as they are.
void WriteModel(torch::serialize::OutputArchive& archive,
                const std::string& name, const torch::nn::Module& model);
void ReadModel(torch::serialize::InputArchive& archive, const std::string& name,
               torch::nn::Module& model);

// Kind, state (such as momentum) and options (such as the learning rate).
// Without what LibTorch cannot write and the optimizer computes anew.
void WriteOptimizer(torch::serialize::OutputArchive& archive,
                    const std::string& name,
                    const torch::optim::Optimizer& optimizer);
// Replaces the state, and the options if `with_options`. Throws, with nothing
// changed, unless it is of an optimizer of the same kind with parameters of the
// same shapes, as far as the archive tells: those before WriteOptimizer() wrote
// the kind do not tell Adam from AdamW. Of an optimizer that is not LibTorch's,
// its save() and load() are called; its options are read if they have a
// serialize().
void ReadOptimizer(torch::serialize::InputArchive& archive,
                   const std::string& name, bool with_options,
                   torch::optim::Optimizer& optimizer);

// Gives models and optimizers back what they had when it took them, when it
// ends, unless Keep() was called.
class Rollback {
 public:
  Rollback() = default;
  ~Rollback();
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;

  // While tensors get other memory, not other values in the same memory, as
  // LibTorch's load() does.
  void Take(torch::nn::Module& model);
  // Leaves it without state.
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

  std::vector<std::pair<at::Tensor, at::Tensor>> tensors_;  // and their memory
  std::vector<Before> optimizers_;
};

}  // namespace hvdlite::internal
