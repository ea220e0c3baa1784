// Elastic training: a training that continues after a restart, also on another
// number of ranks.
//
//   hvdlite::elastic::State state(
//       hvdlite::elastic::StateOptions().path("run.pt"));
//   state.model(*model).optimizer(optimizer).sampler(sampler);
//   state.value("best loss", best_loss);
//   const int exit_code = hvdlite::elastic::run(state, [&] {
//     for (int64_t epoch = sampler.epoch(); epoch < epochs; ++epoch) {
//       sampler.set_epoch(epoch);
//       while (const auto indices = sampler.next()) {
//         ... one step ...
//         state.commit();
//         if (state.should_stop()) return;
//       }
//     }
//   });
//
// When a rank is lost, the job ends and is started again (hvdliterun
// --max-restarts), if necessary on other hosts or with another number of ranks.
// The program then continues from the newest commit. With an MPI that survives
// the loss of a rank (hvdliterun --in-place), the remaining processes continue
// without a restart: run() calls its function again.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <hvdlite/checkpoint.h>
#include <hvdlite/distributed_optimizer.h>
#include <hvdlite/sampler.h>
#include <torch/arg.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hvdlite::internal {

// Convert between values and the types that an archive can hold.
inline c10::IValue ToArchive(const at::Tensor& tensor) {
  return tensor.detach();
}
inline c10::IValue ToArchive(const std::string& text) { return text; }
template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
c10::IValue ToArchive(T number) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(number);
  } else {
    return static_cast<int64_t>(number);
  }
}
template <typename T>
c10::IValue ToArchive(const std::vector<T>& values) {
  using Item = std::conditional_t<
      !std::is_arithmetic_v<T>, T,
      std::conditional_t<std::is_floating_point_v<T>, double, int64_t>>;
  c10::List<Item> list;
  list.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_same_v<T, at::Tensor>) {
      list.push_back(values[i].detach());
    } else {
      list.push_back(static_cast<Item>(values[i]));
    }
  }
  return list;
}

inline void FromArchive(const c10::IValue& value, std::string& text) {
  text = value.toStringRef();
}
// A tensor of the same shape and dtype is overwritten in place.
void FromArchive(const c10::IValue& value, at::Tensor& tensor);
template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
void FromArchive(const c10::IValue& value, T& number) {
  if constexpr (std::is_floating_point_v<T>) {
    number = static_cast<T>(value.toDouble());
  } else {
    number = static_cast<T>(value.toInt());
  }
}
template <typename T>
void FromArchive(const c10::IValue& value, std::vector<T>& values) {
  const auto items = value.toListRef();
  values.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if constexpr (std::is_same_v<T, bool>) {
      values[i] = items[i].toInt() != 0;
    } else {
      FromArchive(items[i], values[i]);
    }
  }
}

}  // namespace hvdlite::internal

namespace hvdlite::elastic {

struct StateOptions {
  // File to which rank 0 writes commits, in two generations like
  // save_checkpoint(). Empty: no file.
  TORCH_ARG(std::string, path);
  // Which commits are written to the file: every n-th one, and the first one
  // after this many seconds. 0 turns a condition off.
  TORCH_ARG(int64_t, save_every_commits) = 1;
  TORCH_ARG(double, save_every_seconds) = 0;
  // Name of the training. A commit with another name is rejected. Several
  // trainings with different names can use the same store.
  TORCH_ARG(std::string, name) = "training";
  // Address of the launcher's store, which keeps commits in memory. Empty: no
  // store. Default: HVDLITE_COMMIT_STORE, which hvdliterun --commit-memory
  // sets.
  TORCH_ARG(std::optional<std::string>, store);
  // Whether restore() also restores the optimizers' options (such as the
  // learning rate). If false, the program's own options stay.
  TORCH_ARG(bool, optimizer_options) = true;
  // Whether commit() also does what gather_buffers() and agree_to_stop() do. If
  // false, commit() is not collective, and rank 0 may call it alone.
  TORCH_ARG(bool, agrees_to_stop) = true;
  // Reads a file that no State has written, for example one of
  // save_checkpoint(). Without this function such a file is an error.
  TORCH_ARG(CheckpointRead, read_other);
};

// Whether a commit is also written to the file.
enum class Save { WhenDue, Now, Never };

// The state of a training, with its commits. Rank 0 makes the commits. With an
// MPI that survives the loss of a rank, every rank also keeps them in memory.
// This is enough because all ranks have the same optimizer and the same model,
// except for buffers. Use a State between init() and shutdown(), in one thread.
// The top of this file has an example.
class State {
 public:
  explicit State(const StateOptions& options = {});
  ~State();  // waits until commits have reached the store and the file
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Add parts to the state: the parameters and buffers of a model, the options
  // and state of an optimizer, the epoch and position of a sampler, and named
  // values (numbers, strings, tensors and vectors of these). Add the same parts
  // on all ranks and in every start of the program. All of them must outlive
  // the State.
  State& model(torch::nn::Module& model);
  State& optimizer(torch::optim::Optimizer& optimizer);
  State& optimizer(DistributedOptimizer& optimizer);
  State& sampler(DistributedSampler& sampler);
  template <typename T>
  State& value(const std::string& name, T& value);

  // Commits the state between two steps. restore() goes back to the last
  // commit, and a restart continues from it. Rank 0 (with an MPI that survives
  // the loss of a rank: every rank) copies the state to memory. Threads of rank
  // 0 then send it to the launcher's store and, if it is due, write it to the
  // file. The training does not wait for them; a newer commit replaces one that
  // is still queued. If the store or the file fails, a warning is logged and
  // the training continues. Collective, since it does what gather_buffers() and
  // agree_to_stop() do (see StateOptions::agrees_to_stop).
  void commit(Save save = Save::WhenDue);

  // Adds the present buffers of every rank to the next commit, for example the
  // running statistics of batch normalisation, which each rank computes from
  // its own samples. On the same number of ranks each rank gets its own buffers
  // back, so that the training continues bit for bit. On another number of
  // ranks all get those of rank 0. Exchanges little data, and none for models
  // without buffers. Collective.
  void gather_buffers();

  // Starts an exchange: has any rank received a signal to stop (StopSignals)?
  // Then takes the result of the exchange that the previous call started, so
  // that a rank rarely waits. For programs that commit rarely. Collective.
  void agree_to_stop();

  // Whether any rank has received a signal to stop, as exchanged by the last
  // commit() or agree_to_stop(). The same on all ranks. stop_signal() is the
  // signal's number, or 0.
  bool should_stop() const { return stop_signal() != 0; }
  int stop_signal() const;

  // Whether there is a commit to restore: rank 0's last commit or, before the
  // program has made one, the newest in the launcher's store and the file.
  // Collective. Throws c10::Error on all ranks if none can be read. If the
  // newest one in the file is damaged, logs a warning and takes the previous
  // one.
  bool can_restore();
  // Restores that commit on all ranks. Collective. Throws c10::Error on all
  // ranks, and changes nothing, if there is no commit or it belongs to another
  // training.
  void restore();
  // Like restore(), from another file.
  void restore_from(const std::string& file);

  // Copies the state of `root_rank` to all ranks. Collective.
  void sync(int root_rank = 0);

  // Blocks until the last commit is in the store and the file. Collective.
  // Throws c10::Error on all ranks if it cannot be written to the file.
  void flush();

  // About the restored commit: the size of the world that made it, and its
  // number, counted from 1 over all starts. 0: nothing was restored.
  int restored_ranks() const;
  uint64_t restored_commit() const;

 private:
  friend int run(State& state, const std::function<void()>& train);
  using Get = std::function<c10::IValue()>;
  using Set = std::function<void(const c10::IValue&)>;
  // Returns nullopt, or on all ranks the exit code if the training cannot
  // begin.
  std::optional<int> Begin(bool in_place);
  State& AddValue(const std::string& name, Get get, Set set);

  class Impl;
  std::unique_ptr<Impl> impl_;
};

// While an object exists, SIGTERM, SIGINT and SIGUSR1 do not end the process;
// should_stop() reports them. A second SIGTERM or SIGINT has its default
// action: it ends the process. A process may have one object at a time; run()
// makes one.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

// Exit code of a training that stopped after a signal, has saved its state, and
// can be continued.
inline constexpr int kStoppedExitCode = 85;
// Exit code after `signal`: 130 for SIGINT (Ctrl-C), as shells expect,
// otherwise kStoppedExitCode.
int stopped_exit_code(int signal);

// Restores `state` if there is a commit (rank 0 logs this), otherwise calls
// sync(). Then calls `train` and flush(). Throws nothing. Returns the exit code
// of the process:
// - 0: the training is complete;
// - stopped_exit_code(): should_stop() is true;
// - 2: the commit is damaged or belongs to another training, so that a restart
//   would not help;
// - 1: any other error, which is logged. The other ranks then fail, too.
// Call run() after init(); shutdown() may follow. Collective.
//
// After WorldBroken, run() calls replace_world(). If this succeeds, it goes
// back to the newest commit that a rank, the store or the file has, and calls
// `train` again. rank() and size() may have changed by then.
// DistributedOptimizers that are part of `state` can still be used. Create
// other DistributedOptimizers, process sets and Works in `train`: those of the
// broken world are invalid.
int run(State& state, const std::function<void()>& train);

// For programs without run(), after WorldBroken. Makes a new world of the
// remaining ranks, in their order, as init() does. This needs an MPI that
// survives the loss of a rank: Open MPI 5 under mpirun --with-ft ulfm, as
// hvdliterun --in-place starts it. Create DistributedOptimizers and process
// sets again afterwards. Returns false if the MPI does not support this; then
// end the process and start the job again. Throws c10::Error if fewer ranks
// remain than hvdliterun's --min-np, or if the world broke repeatedly although
// no rank was lost. Collective over the remaining ranks.
bool replace_world();

// How often replace_world() has succeeded in this process.
int replaced_worlds();

template <typename T>
State& State::value(const std::string& name, T& value) {
  return AddValue(
      name, [&value] { return internal::ToArchive(value); },
      [&value](const c10::IValue& saved) {
        internal::FromArchive(saved, value);
      });
}

}  // namespace hvdlite::elastic
