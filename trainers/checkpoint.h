// Training state in a file.
#pragma once

#include <cstdint>
#include <string>

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace hvdlite::trainers {

// Where a training stands.
struct Progress {
  int64_t epoch = 0;            // epochs done
  int64_t step = 0;             // steps done of the epoch after these
  int64_t steps_per_epoch = 0;  // of the training that saved it
};

// Writes model, optimizer and progress to `file`: to file + ".tmp" first, so
// that `file` is always whole. `model_name` is what ReadCheckpoint compares.
// Throws std::runtime_error naming the file if it cannot be written.
void WriteCheckpoint(const std::string& file, const std::string& model_name,
                     const torch::nn::Module& model,
                     const torch::optim::Optimizer& optimizer,
                     const Progress& progress);

// Reads what WriteCheckpoint wrote into `model` and `optimizer`, whose options
// (learning rate, momentum) stay as they are. The parameters stay the same
// tensors but take the saved memory layout. Throws InputError naming the file
// if it cannot be read or holds another model.
Progress ReadCheckpoint(const std::string& file, const std::string& model_name,
                        torch::nn::Module& model,
                        torch::optim::Optimizer& optimizer);

}  // namespace hvdlite::trainers
