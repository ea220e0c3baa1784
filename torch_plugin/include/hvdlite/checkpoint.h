// Checkpoints: files from which a training continues. A checksum detects a
// damaged file.
//
//   if (hvdlite::rank() == 0) {
//     hvdlite::save_checkpoint(file, *model, optimizer.inner(), progress);
//   }
//   ...
//   if (hvdlite::rank() == 0) {
//     progress = hvdlite::load_checkpoint(file, *model, optimizer.inner());
//   }
//   hvdlite::broadcast_parameters(model, /*root_rank=*/0);
//   hvdlite::broadcast_optimizer_state(optimizer, /*root_rank=*/0);
//   progress = hvdlite::broadcast_object(progress, /*root_rank=*/0);
//
// No function here is collective, and none needs init(). In data-parallel
// training all ranks have the same state. So one rank, usually rank 0, saves
// and loads it, and broadcasts what it has loaded. Ranks that save data of
// their own need one file per rank.
#pragma once

#include <torch/arg.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace hvdlite {

struct CheckpointOptions {
  // Keeps the previous content of `path` as "<path>.previous". This needs disk
  // space for two checkpoints. load_checkpoint() reads the previous one if the
  // newest one is damaged.
  TORCH_ARG(bool, keep_previous) = true;
};

// CheckpointWrite fills an archive. CheckpointRead reads what a CheckpointWrite
// has written.
using CheckpointWrite = std::function<void(torch::serialize::OutputArchive&)>;
using CheckpointRead = std::function<void(torch::serialize::InputArchive&)>;

// Writes the output of `write` to the file `path`, with a checksum. Blocks
// until it is on the disk. If the process or the machine dies meanwhile,
// load_checkpoint() finds this checkpoint or the previous one. The next save on
// this host removes the temporary file ("<path>.tmp.<host>. ...") that was
// left. Throws c10::Error with the file and the reason, such as a full disk, a
// missing directory, or too little memory for the serialised bytes. Both
// generations are unchanged then, and no temporary file is left.
void save_checkpoint(const std::string& path, const CheckpointWrite& write,
                     const CheckpointOptions& options = {});

// Calls `read` with the checkpoint in the file `path`. If this file is missing,
// truncated or damaged (even by one bit), logs a warning with both file names
// and reads the previous one. Throws c10::Error with the files and the reasons
// if neither can be read. If `read` throws a std::exception, the content does
// not fit, and the c10::Error names the file. Also reads archives of
// torch::save() and of hvdlite's first release. They have no checksum, so only
// LibTorch's own checks find damage.
void load_checkpoint(const std::string& path, const CheckpointRead& read);

// Saves and loads a model, its optimizer (a DistributedOptimizer's inner()),
// and `progress`: any other bytes that the program needs to continue.
// load_checkpoint() returns them. It restores parameters, buffers, the
// optimizer's state, and the options of each parameter group (such as the
// learning rate). State that was not saved is removed. Throws c10::Error with
// the file and the tensor, and changes nothing, if the file has another kind of
// optimizer or other groups, or if a tensor is missing, superfluous, or of
// another shape or dtype. Files of earlier versions can be loaded, too; they do
// not distinguish Adam from AdamW. For an optimizer that is not LibTorch's, its
// own save() and load() are used.
void save_checkpoint(const std::string& path, const torch::nn::Module& model,
                     const torch::optim::Optimizer& optimizer,
                     const std::string& progress = {},
                     const CheckpointOptions& options = {});
std::string load_checkpoint(const std::string& path, torch::nn::Module& model,
                            torch::optim::Optimizer& optimizer);

// Write and read one model or optimizer under `key` in an archive, for a
// CheckpointWrite or CheckpointRead that handles several of them. Use these
// instead of LibTorch's load(), which accepts tensors of other shapes, keeps
// state that was not saved and, in 1.13, ignores the options. read_state()
// throws as load_checkpoint() does. It reads the optimizer's options only if
// `with_options` is true.
void write_state(torch::serialize::OutputArchive& archive,
                 const std::string& key, const torch::nn::Module& model);
void write_state(torch::serialize::OutputArchive& archive,
                 const std::string& key,
                 const torch::optim::Optimizer& optimizer);
void read_state(torch::serialize::InputArchive& archive, const std::string& key,
                torch::nn::Module& model);
void read_state(torch::serialize::InputArchive& archive, const std::string& key,
                torch::optim::Optimizer& optimizer, bool with_options = true);

// Whether `path` or "<path>.previous" exists, damaged or not.
bool checkpoint_exists(const std::string& path);

// Saves checkpoints to one file in the background. One thread uses it.
//
//   hvdlite::CheckpointWriter writer("run.pt");
//   writer.save(*model, optimizer.inner(), progress);  // returns after a copy
class CheckpointWriter {
 public:
  explicit CheckpointWriter(const std::string& path,
                            const CheckpointOptions& options = {});
  // Calls wait(), also when an exception unwinds the stack, but not in a
  // process that was forked during a save.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Copies the output of `write` to memory and returns. A thread then does what
  // save_checkpoint() does. save() first waits for the previous save: only one
  // copy is in memory at a time, and a slow disk slows down the training
  // instead of losing checkpoints. A failed save is only a warning, and later
  // failures are not logged until a save succeeds. Throws what `write` throws.
  void save(const CheckpointWrite& write);
  void save(const torch::nn::Module& model,
            const torch::optim::Optimizer& optimizer,
            const std::string& progress = {});

  // Blocks until the last save is done. Returns false if it failed, true if it
  // succeeded or there was none. wait() and save() throw c10::Error in a
  // process that was forked during a save.
  bool wait();

 private:
  struct Saving;

  // `throws`: an error of serialising is thrown instead of logged.
  void Save(const CheckpointWrite& write, bool throws);

  const std::string path_;
  const CheckpointOptions options_;
  std::shared_ptr<Saving> saving_;  // the save that wait() has not seen yet
  bool saved_ = true;               // outcome of the last save that it has seen
  size_t last_bytes_ = 0;  // size of the last save; a hint for the next one
};

}  // namespace hvdlite
