// Elastic training: what survives a restart, on as many ranks as there are
// then.
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
// A job whose rank is lost ends, and is started again (hvdliterun
// --max-restarts): the same program, on other hosts or another number of ranks,
// goes on from the newest commit by itself. Where MPI outlives a rank
// (hvdliterun --in-place), the others do so without being started again: run()
// calls its function once more.
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

// Between values and what an archive holds.
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
// A tensor of the same kind stays where it is.
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
  // File that rank 0 writes commits to, in two generations, as
  // save_checkpoint() does. Empty: none.
  TORCH_ARG(std::string, path);
  // Which commits: one of so many, and the first one after so many seconds; 0:
  // none for that.
  TORCH_ARG(int64_t, save_every_commits) = 1;
  TORCH_ARG(double, save_every_seconds) = 0;
  // What is trained. A commit of something else is refused, and trainings with
  // different names do not meet in one store.
  TORCH_ARG(std::string, name) = "training";
  // Where the launcher keeps commits in memory ("": nowhere). Unless given,
  // HVDLITE_COMMIT_STORE, which hvdliterun --commit-memory sets.
  TORCH_ARG(std::optional<std::string>, store);
  // Whether the optimizers' options (such as the learning rate) come back, too,
  // or stay as the program has set them.
  TORCH_ARG(bool, optimizer_options) = true;
  // Whether commit() does what gather_buffers() and agree_to_stop() do. If not,
  // it is not collective, and rank 0 may call it alone.
  TORCH_ARG(bool, agrees_to_stop) = true;
  // Takes from a file that no State wrote (one of save_checkpoint(), say) what
  // it needs. Without it such a file is an error.
  TORCH_ARG(CheckpointRead, read_other);
};

// Whether a commit goes to the file, too.
enum class Save { WhenDue, Now, Never };

// What a training goes on from, and what keeps it. Commits are rank 0's (where
// MPI outlives a rank, every one keeps them in memory): all ranks have the same
// model, but for its buffers, and optimizer. One thread uses it; between init()
// and shutdown().
class State {
 public:
  explicit State(const StateOptions& options = {});
  ~State();  // when commits have reached store and file
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // What it consists of, the same on all ranks and in every start of the
  // program. All of it outlives the State. Parameters and buffers; options and
  // state of an optimizer; epoch and position of a sampler; numbers, strings,
  // tensors and vectors of them, by names of their own.
  State& model(torch::nn::Module& model);
  State& optimizer(torch::optim::Optimizer& optimizer);
  State& optimizer(DistributedOptimizer& optimizer);
  State& sampler(DistributedSampler& sampler);
  template <typename T>
  State& value(const std::string& name, T& value);

  // Between two steps: what restore() goes back to, and a restart goes on from.
  // Rank 0 (where MPI outlives a rank, every one) copies everything to memory;
  // threads then bring it to the launcher's store and, where it is due, to the
  // file. The training does not wait for them: a newer commit takes the place
  // of one that has not begun to travel. A place that fails is a warning, and
  // the training goes on. Collective: does what gather_buffers() and
  // agree_to_stop() do (StateOptions::agrees_to_stop).
  void commit(Save save = Save::WhenDue);

  // The next commit has every rank's own buffers as they are now (the running
  // statistics of batch normalisation, which each rank gathers from its own
  // samples), beside those of rank 0: what restores it on as many ranks gives
  // each its own, so that a training goes on with the same bits. Other numbers
  // of ranks take rank 0's. Small exchanges, and none for models without
  // buffers. Collective.
  void gather_buffers();

  // Asks all ranks whether a signal asks for the end (see StopSignals), and
  // takes the answer to the question of the last call: so nobody waits. For
  // programs that commit rarely. Collective.
  void agree_to_stop();

  // Whether a signal to any rank asks for the end, as all ranks knew it before
  // the last commit() or agree_to_stop(): the same on all of them. The signal,
  // or 0.
  bool should_stop() const { return stop_signal() != 0; }
  int stop_signal() const;

  // Whether there is something to restore: rank 0's last commit or, in a
  // program that has made none yet, the newest in the launcher's store and the
  // file. Collective. Throws c10::Error on all ranks if none can be read; where
  // the newest in the file is damaged it warns, and takes the one before.
  bool can_restore();
  // Back to that, on all ranks. Collective. Throws c10::Error on all ranks, and
  // changes nothing, if there is nothing or it is of something else.
  void restore();
  // As restore(), from another file.
  void restore_from(const std::string& file);

  // All ranks take what `root_rank` has. Collective.
  void sync(int root_rank = 0);

  // Until the last commit is in store and file. Collective. Throws c10::Error
  // on all ranks where it cannot be written to the file.
  void flush();

  // Of what was restored: the ranks of the world that made it, and its number,
  // counted from 1 over all starts. 0: nothing.
  int restored_ranks() const;
  uint64_t restored_commit() const;

 private:
  friend int run(State& state, const std::function<void()>& train);
  using Get = std::function<c10::IValue()>;
  using Set = std::function<void(const c10::IValue&)>;
  // Null, or the exit code, on all ranks, where it cannot.
  std::optional<int> Begin(bool in_place);
  State& AddValue(const std::string& name, Get get, Set set);

  class Impl;
  std::unique_ptr<Impl> impl_;
};

// While it lives, SIGTERM, SIGINT and SIGUSR1 do not end the process, but are
// what should_stop() tells of. A second SIGTERM or SIGINT does what it did
// before. One at a time in a process; run() has one.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

// The exit code of a training that was asked to stop, has saved, and can go on.
inline constexpr int kStoppedExitCode = 85;
// The same, but for SIGINT (Ctrl-C), of which a shell expects 130.
int stopped_exit_code(int signal);

// Restores `state` if there is something, telling so on rank 0, else sync()s
// it; calls `train`, and flush()es. Returns the process's exit code, and throws
// nothing: 0; stopped_exit_code() if should_stop(); 2 if what there is to
// restore is of something else or damaged, which starting again would not
// change; 1, after telling why, for anything else: an exception of this rank
// ends the others' waiting. Call it between init() and shutdown(), or leave the
// end to the process's exit. Collective.
//
// After WorldBroken it does replace_world(), if that can be, goes back to the
// newest commit that a rank, store or file has, and calls `train` again: rank()
// and size() are others then. DistributedOptimizers that were given to `state`
// go on; other ones, process sets and Works of the broken world are of no use:
// make them in `train`.
int run(State& state, const std::function<void()>& train);

// For programs without run(), after WorldBroken. Where MPI outlives a rank that
// is lost (Open MPI 5 under mpirun --with-ft ulfm, as hvdliterun --in-place
// starts it), makes a world of the ranks that are left, in their order, as
// init() did; what was made in the broken one (DistributedOptimizers, process
// sets) has to be made anew. False: it does not; this process should end, and
// the job be started again. Throws c10::Error where fewer are left than
// hvdliterun's --min-np, or the world broke again and again though no rank was
// lost. Collective over the ranks that are left.
bool replace_world();

// How often that was done in this process.
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
