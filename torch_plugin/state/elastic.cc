#include <c10/util/Type.h>
#include <hvdlite/broadcast_state.h>
#include <hvdlite/elastic.h>
#include <hvdlite/errors.h>
#include <hvdlite/ops.h>
#include <hvdlite/timeline.h>
#include <hvdlite/world.h>
#include <string.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/checkpoint_file.h"
#include "base/commit_store.h"
#include "base/commit_writer.h"
#include "base/environment.h"
#include "negotiation/world/world.h"
#include "torch_plugin/state/archives.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {

void FromArchive(const c10::IValue& value, at::Tensor& tensor) {
  const at::Tensor saved = value.toTensor();
  if (tensor.defined() && tensor.sizes() == saved.sizes() &&
      tensor.scalar_type() == saved.scalar_type()) {
    const torch::NoGradGuard no_grad;
    tensor.copy_(saved);
  } else {
    tensor = saved;
  }
}

}  // namespace hvdlite::internal

namespace hvdlite::elastic {
namespace {

using internal::ThrowError;
using internal::Warn;
using Clock = std::chrono::steady_clock;

constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGUSR1};
volatile std::sig_atomic_t last_signal = 0;
struct sigaction actions_before[std::size(kStopSignals)];

// What a commit consists of, in its archive.
constexpr char kNumber[] = "commit";
constexpr char kNewest[] = "newest";  // number that is known
constexpr char kRanks[] = "ranks";
constexpr char kParts[] = "parts";  // what each part is, to compare
constexpr char kValues[] = "values";
constexpr char kSamplers[] = "samplers";

// Of the i-th model or optimizer; those of save_checkpoint() where it is the
// only one.
std::string Key(const char* part, size_t i) {
  return i == 0 ? part : absl::StrCat(part, i);
}

std::string ShapeOf(const at::Tensor& tensor) {
  return absl::StrCat(c10::toString(tensor.scalar_type()), " [",
                      absl::StrJoin(tensor.sizes(), ", "), "]");
}

std::vector<std::string> ToStrings(const c10::IValue& list) {
  std::vector<std::string> strings;
  internal::FromArchive(list, strings);
  return strings;
}

// The launcher's store, which may have a commit, does not answer.
class StoreFailure : public std::runtime_error {
 public:
  explicit StoreFailure(absl::string_view text)
      : std::runtime_error(std::string(text)) {}
};

struct Value {
  std::string name;
  std::function<c10::IValue()> get;
  std::function<void(const c10::IValue&)> set;
};

}  // namespace

class State::Impl {
 public:
  explicit Impl(const StateOptions& options) : options_(options) {
    const std::string store =
        options.store().value_or(base::ProcessEnvironment()
                                     .get(base::kCommitStoreVariable)
                                     .value_or(""));
    if (!store.empty()) {
      store_ = store;
      store_writer_.emplace(
          [store, name = options.name()](const base::StoredCommit& commit) {
            return base::PutCommit(store, name, commit.number, commit.bytes);
          },
          Warn);
    }
    if (!options.path().empty()) {
      file_writer_.emplace(
          [path = options.path()](const base::StoredCommit& commit) {
            return base::WriteCheckpointFile(path, commit.bytes,
                                             /*keep_previous=*/true);
          },
          Warn);
    }
  }

  // Keeps it; rank 0 also brings it where it is to go.
  void Commit(Save save) {
    absl::StatusOr<std::string> bytes = internal::Serialise(
        absl::StrCat("a commit of ", options_.name()),
        [this](torch::serialize::OutputArchive& archive) { Write(archive); },
        last_ == nullptr ? 0 : last_->bytes.size());
    if (!bytes.ok()) {
      if (has_memory_) {
        Warn(absl::StrCat(bytes.status().message(),
                          "; going on with the commit before, and not telling "
                          "of it again until there is enough"));
      }
      has_memory_ = false;
      return;
    }
    has_memory_ = true;
    last_ = std::make_shared<base::StoredCommit>(
        base::StoredCommit{++number_, *std::move(bytes)});
    origin_ = "the last commit";
    if (rank() != 0) return;
    if (store_writer_) store_writer_->Write(last_);
    const bool is_due = IsDue();
    if (file_writer_ &&
        (save == Save::Now || (save == Save::WhenDue && is_due))) {
      ToFile();
    }
  }

  // On rank 0: makes `last_` the newest commit that there is, if there is one.
  void Find() {
    if (last_ != nullptr) return;
    absl::Status stored_status;
    if (!store_.empty()) {
      absl::StatusOr<base::StoredCommit> stored =
          base::GetCommit(store_, options_.name());
      if (!absl::IsNotFound(stored.status())) stored_status = stored.status();
      if (stored.ok()) {
        Take(*std::move(stored), "the commit in the launcher's store");
      }
    }
    if (!options_.path().empty() && checkpoint_exists(options_.path())) {
      try {
        ReadFile(options_.path());
      } catch (const std::exception& error) {
        if (last_ == nullptr) throw;
        Warn(absl::StrCat(internal::TextOf(error), "; taking ", origin_));
      }
    }
    if (stored_status.ok()) return;
    // Rather than begin anew: it may be there the next time.
    if (last_ == nullptr) throw StoreFailure(stored_status.message());
    Warn(absl::StrCat(stored_status.message(), "; taking ", origin_));
  }

  // The newest whole generation of a file, unless there is a newer commit.
  void ReadFile(const std::string& path) {
    internal::WholeCheckpoint file = internal::ReadWholeCheckpoint(path);
    c10::IValue number(int64_t{0});
    file.archive.try_read(kNumber, number);
    const auto counted = static_cast<uint64_t>(number.toInt());
    if (last_ != nullptr && last_->number >= counted) return;
    Take({counted, std::move(file.bytes)},
         absl::StrCat("the checkpoint '", file.file, "'"));
    if (path == options_.path()) to_file_ = counted;
  }

  bool HasCommit() const { return last_ != nullptr; }
  void Forget() { last_ = nullptr; }

  // On rank 0: parts become what the last commit has. Throws, naming it, with
  // nothing changed, if it is of something else.
  void Load() {
    if (last_ == nullptr) {
      ThrowError(
          "elastic::State: there is nothing to restore: no commit has been "
          "made, and none is in the launcher's store or a file");
    }
    try {
      torch::serialize::InputArchive archive;
      archive.load_from(last_->bytes.data(), last_->bytes.size());
      Read(archive);
    } catch (const std::exception& error) {
      ThrowError(
          absl::StrCat(origin_, " does not fit: ", internal::TextOf(error)));
    }
    restored_commit_ = last_->number;
  }

  // After the world was replaced: all ranks go back to the newest commit that
  // one of them has.
  void GoBack() {
    question_.reset();
    for (DistributedOptimizer* optimizer : distributed_) optimizer->Rejoin();
    const auto agree = [](int64_t value, ReduceOp op, const char* name) {
      return allreduce(torch::tensor(value, torch::kInt64),
                       AllreduceOptions().op(op).name(name))
          .item<int64_t>();
    };
    const int64_t own =
        last_ == nullptr ? -1 : static_cast<int64_t>(last_->number);
    const int64_t newest = agree(own, ReduceOp::Max, "elastic.newest");
    const int64_t root =
        agree(own == newest ? rank() : size(), ReduceOp::Min, "elastic.root");
    if (rank() == root) Load();
    Sync(static_cast<int>(root));
  }

  void Sync(int root_rank) {
    for (torch::nn::Module* model : models_) {
      broadcast_parameters(*model, root_rank);
    }
    for (torch::optim::Optimizer* optimizer : optimizers_) {
      broadcast_optimizer_state(*optimizer, root_rank);
    }
    const bool is_root = rank() == root_rank;
    std::string rest;
    if (is_root) {
      rest = internal::ValueOrThrow(internal::Serialise(
          "what elastic::State::sync() broadcasts",
          [this](torch::serialize::OutputArchive& archive) {
            archive.write(kNumber, static_cast<int64_t>(restored_commit_));
            archive.write(kNewest, static_cast<int64_t>(number_));
            archive.write(kRanks, int64_t{restored_ranks_});
            WriteRest(archive);
          }));
    }
    rest = broadcast_object(rest, root_rank);
    if (is_root) return;
    torch::serialize::InputArchive archive;
    archive.load_from(rest.data(), rest.size());
    restored_commit_ = static_cast<uint64_t>(ReadInteger(archive, kNumber));
    number_ = static_cast<uint64_t>(ReadInteger(archive, kNewest));
    restored_ranks_ = static_cast<int>(ReadInteger(archive, kRanks));
    ReadRest(archive);
  }

  void AgreeToStop() {
    if (question_) stop_signal_ = question_->wait().item<int>();
    question_ = allreduce_async(
        torch::tensor(static_cast<int>(last_signal)),
        AllreduceOptions()
            .op(ReduceOp::Max)
            .name(absl::StrCat("elastic.", options_.name(), ".stop_signal")));
  }

  // Whether the last commit is in the file, or need not be.
  bool Flush() {
    if (question_) (void)std::exchange(question_, {})->wait();
    if (store_writer_) store_writer_->Wait();
    if (!file_writer_ || last_ == nullptr || number_ == 0) return true;
    if (to_file_ == last_->number && file_writer_->Wait()) return true;
    if (to_file_ != last_->number) ToFile();
    return file_writer_->Wait();
  }

  StateOptions options_;
  std::vector<torch::nn::Module*> models_;
  std::vector<torch::optim::Optimizer*> optimizers_;
  std::vector<DistributedOptimizer*> distributed_;  // of these
  std::vector<DistributedSampler*> samplers_;
  std::vector<Value> values_;
  int stop_signal_ = 0;
  int restored_ranks_ = 0;
  uint64_t restored_commit_ = 0;

 private:
  void Take(base::StoredCommit commit, std::string origin) {
    last_ = std::make_shared<base::StoredCommit>(std::move(commit));
    number_ = std::max(number_, last_->number);
    origin_ = std::move(origin);
  }

  void ToFile() {
    to_file_ = last_->number;
    commits_since_save_ = 0;
    saved_at_ = Clock::now();
    file_writer_->Write(last_);
  }

  bool IsDue() {
    ++commits_since_save_;
    const double seconds =
        std::chrono::duration<double>(Clock::now() - saved_at_).count();
    return (options_.save_every_commits() > 0 &&
            commits_since_save_ >= options_.save_every_commits()) ||
           (options_.save_every_seconds() > 0 &&
            seconds >= options_.save_every_seconds());
  }

  // A line for each part that must be the same in a commit.
  std::vector<std::string> Parts() const {
    std::vector<std::string> parts = {options_.name()};
    const auto add = [&](const std::string& owner, const char* what,
                         const auto& tensors) {
      for (const auto& item : tensors) {
        if (!item.value().defined()) continue;
        parts.push_back(absl::StrCat(owner, "'s ", what, " '", item.key(),
                                     "' of ", ShapeOf(item.value())));
      }
    };
    for (size_t i = 0; i < models_.size(); ++i) {
      const std::string owner = Key("model", i);
      add(owner, "parameter", models_[i]->named_parameters());
      add(owner, "buffer", models_[i]->named_buffers());
    }
    for (const torch::optim::Optimizer* optimizer : optimizers_) {
      parts.push_back(absl::StrCat("an optimizer ",
                                   c10::demangle(typeid(*optimizer).name())));
      for (const auto& group : optimizer->param_groups()) {
        std::vector<std::string> shapes;
        for (const at::Tensor& tensor : group.params()) {
          shapes.push_back(ShapeOf(tensor));
        }
        parts.push_back(absl::StrCat("a parameter group (",
                                     absl::StrJoin(shapes, ", "), ")"));
      }
    }
    for (const DistributedSampler* sampler : samplers_) {
      parts.push_back(
          absl::StrCat("a data set of ", sampler->dataset_size(), " samples"));
    }
    for (const Value& value : values_) {
      parts.push_back(absl::StrCat("a value '", value.name, "'"));
    }
    return parts;
  }

  void CheckParts(const std::vector<std::string>& theirs) const {
    const std::vector<std::string> ours = Parts();
    const auto [own, other] =
        std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
    if (own == ours.end() && other == theirs.end()) return;
    ThrowError(absl::StrCat("it holds ",
                            other == theirs.end() ? "nothing more" : *other,
                            ", but this training is of ",
                            own == ours.end() ? "nothing more" : *own));
  }

  // Samplers and values.
  void WriteRest(torch::serialize::OutputArchive& archive) const {
    c10::List<int64_t> samplers;
    for (const DistributedSampler* sampler : samplers_) {
      samplers.push_back(sampler->epoch());
      samplers.push_back(sampler->position());
    }
    archive.write(kSamplers, samplers);
    torch::serialize::OutputArchive values(archive.compilation_unit());
    for (size_t i = 0; i < values_.size(); ++i) {
      values.write(absl::StrCat("value", i), values_[i].get());
    }
    archive.write(kValues, values);
  }

  void ReadRest(torch::serialize::InputArchive& archive) const {
    c10::IValue samplers;
    archive.read(kSamplers, samplers);
    const auto numbers = samplers.toIntVector();
    for (size_t i = 0; i < samplers_.size(); ++i) {
      samplers_[i]->resume(numbers.at(2 * i), numbers.at(2 * i + 1));
    }
    torch::serialize::InputArchive values;
    archive.read(kValues, values);
    for (size_t i = 0; i < values_.size(); ++i) {
      c10::IValue value;
      values.read(absl::StrCat("value", i), value);
      try {
        values_[i].set(value);
      } catch (const std::exception& error) {
        ThrowError(
            absl::StrCat("the value '", values_[i].name,
                         "' is of another type: ", internal::TextOf(error)));
      }
    }
  }

  void Write(torch::serialize::OutputArchive& archive) const {
    archive.write(kNumber, static_cast<int64_t>(number_ + 1));
    archive.write(kRanks, int64_t{size()});
    archive.write(kParts, internal::ToArchive(Parts()));
    for (size_t i = 0; i < models_.size(); ++i) {
      internal::WritePart(archive, Key("model", i), *models_[i]);
    }
    for (size_t i = 0; i < optimizers_.size(); ++i) {
      internal::WriteOptimizer(archive, Key("optimizer", i), *optimizers_[i]);
    }
    WriteRest(archive);
  }

  static int64_t ReadInteger(torch::serialize::InputArchive& archive,
                             const char* key) {
    c10::IValue value;
    archive.read(key, value);
    return value.toInt();
  }

  void Read(torch::serialize::InputArchive& archive) {
    c10::IValue parts;
    if (!archive.try_read(kParts, parts)) {
      if (!options_.read_other()) {
        ThrowError("it is not of an elastic::State");
      }
      restored_ranks_ = 0;
      options_.read_other()(archive);
      return;
    }
    CheckParts(ToStrings(parts));
    for (size_t i = 0; i < models_.size(); ++i) {
      internal::ReadPart(archive, Key("model", i), *models_[i]);
    }
    for (size_t i = 0; i < optimizers_.size(); ++i) {
      internal::ReadOptimizer(archive, Key("optimizer", i),
                              options_.optimizer_options(), *optimizers_[i]);
    }
    ReadRest(archive);
    restored_ranks_ = static_cast<int>(ReadInteger(archive, kRanks));
  }

  std::shared_ptr<const base::StoredCommit> last_;
  std::string origin_;    // of the last commit, for messages
  uint64_t number_ = 0;   // the largest that is known
  uint64_t to_file_ = 0;  // the last that was given to the file's writer
  int64_t commits_since_save_ = 0;
  Clock::time_point saved_at_ = Clock::now();
  bool has_memory_ = true;
  std::optional<Work> question_;  // under way
  std::string store_;
  // After what they use.
  std::optional<base::CommitWriter> store_writer_;
  std::optional<base::CommitWriter> file_writer_;
};

namespace {

// What rank 0 has thrown in `action`, on all ranks; empty if nothing.
std::string ProblemOfRankZero(const std::function<void()>& action) {
  std::string problem;
  if (rank() == 0) {
    try {
      action();
    } catch (const std::exception& error) {
      problem = internal::TextOf(error);
      if (problem.empty()) problem = "an exception without a text";
    }
  }
  return broadcast_object(problem, /*root_rank=*/0);
}

void OnRankZero(const std::function<void()>& action) {
  const std::string problem = ProblemOfRankZero(action);
  if (!problem.empty()) ThrowError(problem);
}

void Tell(const std::string& text) {
  if (rank() != 0) return;
  std::cerr << absl::StrCat("hvdlite: ", text, "\n") << std::flush;
}

}  // namespace

State::State(const StateOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}

State::~State() = default;

State& State::model(torch::nn::Module& model) {
  impl_->models_.push_back(&model);
  return *this;
}

State& State::optimizer(torch::optim::Optimizer& optimizer) {
  impl_->optimizers_.push_back(&optimizer);
  return *this;
}

State& State::optimizer(DistributedOptimizer& optimizer) {
  impl_->distributed_.push_back(&optimizer);
  return this->optimizer(optimizer.inner());
}

State& State::sampler(DistributedSampler& sampler) {
  impl_->samplers_.push_back(&sampler);
  return *this;
}

State& State::AddValue(const std::string& name, Get get, Set set) {
  impl_->values_.push_back({name, std::move(get), std::move(set)});
  return *this;
}

void State::commit(Save save) {
  if (rank() == 0 || internal::CurrentWorld()->can_be_replaced()) {
    const TraceSpan span("COMMIT");
    impl_->Commit(save);
  }
  if (impl_->options_.agrees_to_stop()) impl_->AgreeToStop();
}

void State::agree_to_stop() { impl_->AgreeToStop(); }

int State::stop_signal() const { return impl_->stop_signal_; }

bool State::can_restore() {
  OnRankZero([&] { impl_->Find(); });
  return broadcast_object(impl_->HasCommit() ? "yes" : "", 0) == "yes";
}

void State::restore() {
  OnRankZero([&] {
    impl_->Find();
    impl_->Load();
  });
  sync();
}

void State::restore_from(const std::string& file) {
  OnRankZero([&] {
    impl_->Forget();
    impl_->ReadFile(file);
    impl_->Load();
  });
  sync();
}

void State::sync(int root_rank) { impl_->Sync(root_rank); }

void State::flush() {
  // The question under way is every rank's.
  bool saved = impl_->Flush();
  saved = broadcast_object(saved ? "yes" : "", 0) == "yes";
  if (saved) return;
  ThrowError(absl::StrCat("the last commit could not be written to '",
                          impl_->options_.path(),
                          "'; a warning of rank 0 said why"));
}

int State::restored_ranks() const { return impl_->restored_ranks_; }

uint64_t State::restored_commit() const { return impl_->restored_commit_; }

StopSignals::StopSignals() {
  last_signal = 0;
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    struct sigaction action = {};
    action.sa_handler = [](int signal) { last_signal = signal; };
    action.sa_flags = SA_RESTART;
    // Whoever asks twice does not want to wait.
    if (kStopSignals[i] != SIGUSR1) action.sa_flags |= SA_RESETHAND;
    sigaction(kStopSignals[i], &action, &actions_before[i]);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    sigaction(kStopSignals[i], &actions_before[i], nullptr);
  }
  last_signal = 0;
}

std::optional<int> State::Begin(bool in_place) {
  if (in_place) {
    impl_->GoBack();
  } else {
    int exit_code = 0;
    const std::string problem = ProblemOfRankZero([&] {
      exit_code = 2;
      try {
        impl_->Find();
        if (impl_->HasCommit()) impl_->Load();
      } catch (const StoreFailure&) {
        exit_code = 1;
        throw;
      }
    });
    if (!problem.empty()) {
      Tell(problem);
      return std::stoi(broadcast_object(std::to_string(exit_code), 0));
    }
    sync();
  }
  if (restored_commit() > 0) {
    Tell(absl::StrCat("going on from commit ", restored_commit(), ", made by ",
                      restored_ranks(),
                      restored_ranks() == 1 ? " rank" : " ranks"));
  }
  // A rank may be lost before the first commit, too.
  if (internal::CurrentWorld()->can_be_replaced()) {
    impl_->Commit(Save::Never);
  }
  return std::nullopt;
}

bool replace_world() {
  const auto world = internal::CurrentWorldOrNull();
  if (world == nullptr || !world->can_be_replaced()) return false;
  internal::ThrowIfError(internal::ReplaceBrokenWorld());
  return true;
}

int replaced_worlds() { return internal::ReplacedWorlds(); }

int run(State& state, const std::function<void()>& train) {
  const StopSignals signals;
  try {
    for (bool in_place = false;; in_place = true) {
      try {
        if (const auto exit_code = state.Begin(in_place)) return *exit_code;
        train();
        state.flush();
        break;
      } catch (const WorldBroken&) {
        if (!replace_world()) throw;
      }
    }
    if (!state.should_stop()) return 0;
    Tell(absl::StrCat("stopped by ", strsignal(state.stop_signal()),
                      "; starting the program again goes on from the last "
                      "commit"));
    return kStoppedExitCode;
  } catch (const std::exception& error) {
    const auto world = internal::CurrentWorldOrNull();
    const int rank = world == nullptr ? -1 : world->topology().rank;
    const std::string text = internal::TextOf(error);
    std::cerr << absl::StrCat("hvdlite: rank ", rank, ": ", text, "\n")
              << std::flush;
    if (world != nullptr) {
      world->coordinator().Leave(absl::StrCat(
          "an exception on rank ", rank, " ended its elastic::run(): ", text));
    }
    return 1;
  }
}

}  // namespace hvdlite::elastic
