// Checkpoints: what a training goes on from, in a file that is whole or is
// found not to be.
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
// Nothing here is collective, and nothing needs init(). In a data-parallel
// training all ranks have the same to save: one rank calls, rank 0 as a rule,
// and what it has loaded is broadcast. Ranks that save something of their own
// give each a file of its own.
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
  // What `path` held before becomes "<path>.previous". It takes its place on
  // the disk, and is what is left if the newest is damaged.
  TORCH_ARG(bool, keep_previous) = true;
};

// Fills an archive, or takes from one what such a function wrote.
using CheckpointWrite = std::function<void(torch::serialize::OutputArchive&)>;
using CheckpointRead = std::function<void(torch::serialize::InputArchive&)>;

// Makes `path` hold what `write` writes, with a checksum. Blocks until it is on
// the disk. If the process or the machine ends meanwhile, load_checkpoint()
// finds this checkpoint or the one before; what is left of a temporary file
// beside it ("<path>.tmp.<host>. ...") is removed by the next save on this
// host. Throws c10::Error with the file and the reason (no space, no folder, no
// memory for the serialised bytes, ...): both generations are then what they
// were, and no temporary file is left.
void save_checkpoint(const std::string& path, const CheckpointWrite& write,
                     const CheckpointOptions& options = {});

// Hands `read` the checkpoint that `path` holds. If that is missing, cut off or
// damaged, be it by one bit, warns, naming both files, and takes the one
// before. Throws c10::Error with the files and what is wrong if neither can be
// taken, and with the file if `read` throws a std::exception: then there is
// something else in it. Archives by torch::save() and of the first release,
// which have no checksum, are read, too: there damage is noticed only where
// LibTorch notices.
void load_checkpoint(const std::string& path, const CheckpointRead& read);

// The same for a model, its optimizer (a DistributedOptimizer's inner()), and
// whatever else the program needs to go on, as bytes, which load_checkpoint()
// returns. After loading, parameters, buffers, the optimizer's state and the
// options of each of its groups (such as the learning rate) are what was saved,
// and nothing else: state that was not saved is gone. Throws c10::Error with the
// file and the tensor, with nothing changed, if the file has another kind of
// optimizer or other groups, or a tensor is missing, superfluous, or of another
// shape or dtype. Takes the files of earlier versions, too, which do not tell
// Adam from AdamW. An optimizer that is not LibTorch's is what its save() and
// load() make of it.
void save_checkpoint(const std::string& path, const torch::nn::Module& model,
                     const torch::optim::Optimizer& optimizer,
                     const std::string& progress = {},
                     const CheckpointOptions& options = {});
std::string load_checkpoint(const std::string& path, torch::nn::Module& model,
                            torch::optim::Optimizer& optimizer);

// What these write and read of a model or an optimizer, under a `key` of an
// archive: for functions that fill an archive with several of them, since
// LibTorch's own load() takes tensors of other shapes, keeps state that was not
// saved and, in 1.13, leaves the options out. read_state() throws as
// load_checkpoint() does; the optimizer's options only if `with_options`.
void write_state(torch::serialize::OutputArchive& archive,
                 const std::string& key, const torch::nn::Module& model);
void write_state(torch::serialize::OutputArchive& archive,
                 const std::string& key,
                 const torch::optim::Optimizer& optimizer);
void read_state(torch::serialize::InputArchive& archive, const std::string& key,
                torch::nn::Module& model);
void read_state(torch::serialize::InputArchive& archive, const std::string& key,
                torch::optim::Optimizer& optimizer, bool with_options = true);

// Whether load_checkpoint() would find a file, whole or not: `path` or the one
// before.
bool checkpoint_exists(const std::string& path);

// Saves to one file in the background. One thread uses it.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(const std::string& path,
                            const CheckpointOptions& options = {});
  // wait(), unless this process was forked while a save was under way. Also
  // where an exception unwinds it.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Copies what `write` writes to memory, and returns; a thread then does what
  // save_checkpoint() does. Waits for the save before this one first, so that
  // one copy is in memory at a time, and a disk that is too slow slows the
  // training rather than leaving checkpoints out. A save that fails ends
  // nothing: it is a warning, one until a later save succeeds. What `write`
  // throws is thrown.
  void save(const CheckpointWrite& write);
  void save(const torch::nn::Module& model,
            const torch::optim::Optimizer& optimizer,
            const std::string& progress = {});

  // Until the last save is done. False if it failed; true if there was none.
  // Throws c10::Error, as does save(), where this process was forked meanwhile.
  bool wait();

 private:
  struct Saving;

  // `throws`: what cannot be serialised is thrown, and no warning.
  void Save(const CheckpointWrite& write, bool throws);

  const std::string path_;
  const CheckpointOptions options_;
  std::shared_ptr<Saving> saving_;  // the last, unless wait() has seen it
  bool saved_ = true;               // the last save that wait() has seen
  size_t last_bytes_ = 0;  // of the last save; the next one has as many
};

}  // namespace hvdlite
