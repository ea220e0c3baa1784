#include <hvdlite/checkpoint.h>
#include <torch/optim/lbfgs.h>

#include <exception>
#include <filesystem>
#include <future>
#include <new>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/checkpoint_file.h"
#include "base/environment.h"
#include "base/fork_mark.h"
#include "base/logging.h"
#include "negotiation/world/current_world.h"
#include "negotiation/world/world.h"
#include "torch_plugin/state/archives.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace internal {

void Warn(const std::string& text) {
  const auto world = CurrentWorldOrNull();
  if (world != nullptr) {
    world->logger().Warning(text);
  } else {
    base::Logger(base::Severity::kWarning, /*rank=*/-1).Warning(text);
  }
}

std::string TextOf(const std::exception& error) {
  const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
  return c10_error != nullptr ? c10_error->what_without_backtrace()
                              : error.what();
}

absl::StatusOr<std::string> Serialise(const std::string& what,
                                      const CheckpointWrite& write,
                                      size_t expected_bytes) {
  std::string bytes;
  bool fits = true;
  // LibTorch ends the process if this fails or throws.
  const auto append = [&](const void* data, size_t size) {
    try {
      if (fits) bytes.append(static_cast<const char*>(data), size);
    } catch (const std::bad_alloc&) {
      fits = false;
    }
    return size;
  };
  try {
    bytes.reserve(expected_bytes);
    torch::serialize::OutputArchive archive;
    write(archive);
    archive.save_to(append);
  } catch (const std::bad_alloc&) {
    fits = false;
  }
  if (fits) return bytes;
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot write ", what,
      ": there is not enough memory for a copy of what it is to hold"));
}

namespace {

// An error names the file.
absl::StatusOr<WholeCheckpoint> Open(const std::string& file) {
  try {
    absl::StatusOr<std::string> bytes = base::ReadCheckpointFile(file);
    if (!bytes.ok()) return bytes.status();
    WholeCheckpoint checkpoint = {file, *std::move(bytes), {}};
    checkpoint.archive.load_from(checkpoint.bytes.data(),
                                 checkpoint.bytes.size());
    return checkpoint;
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrCat(
        "the checkpoint '", file, "' cannot be read: ", TextOf(error)));
  }
}

// LibTorch cannot write lists with undefined tensors, such as `al` of LBFGS's
// state is up to the size of the history; each iteration computes it anew.
void DropScratch(torch::optim::Optimizer& optimizer) {
  for (auto& item : optimizer.state()) {
    auto* const state =
        dynamic_cast<torch::optim::LBFGSParamState*>(item.second.get());
    if (state != nullptr) state->al().reset();
  }
}

std::string GroupKey(const std::string& name, size_t group) {
  return absl::StrCat(name, "_group", group);
}

}  // namespace

WholeCheckpoint ReadWholeCheckpoint(const std::string& path) {
  absl::StatusOr<WholeCheckpoint> newest = Open(path);
  if (newest.ok()) return *std::move(newest);
  const std::string why(newest.status().message());
  absl::StatusOr<WholeCheckpoint> previous =
      Open(base::PreviousGeneration(path));
  if (absl::IsNotFound(previous.status())) ThrowError(why);
  if (!previous.ok()) {
    ThrowError(absl::StrCat(
        why, "; nor can the one before be: ", previous.status().message()));
  }
  Warn(absl::StrCat(why, "; taking the one before, '", previous->file, "'"));
  return *std::move(previous);
}

void WriteOptimizer(torch::serialize::OutputArchive& archive,
                    const std::string& name,
                    torch::optim::Optimizer& optimizer) {
  DropScratch(optimizer);
  WritePart(archive, name, optimizer);
  // LibTorch's own archive of an optimizer has the options, but loading it does
  // not set them; hence once more.
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    torch::serialize::OutputArchive options(archive.compilation_unit());
    optimizer.param_groups()[i].options().serialize(options);
    archive.write(GroupKey(name, i), options);
  }
}

void ReadOptimizer(torch::serialize::InputArchive& archive,
                   const std::string& name, bool with_options,
                   torch::optim::Optimizer& optimizer) {
  // Loading adds; what the archive does not have must go.
  optimizer.state().clear();
  ReadPart(archive, name, optimizer);
  if (!with_options) return;
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    torch::serialize::InputArchive options;
    archive.read(GroupKey(name, i), options);
    optimizer.param_groups()[i].options().serialize(options);
  }
}

}  // namespace internal

namespace {

std::string Named(const std::string& path) {
  return absl::StrCat("the checkpoint '", path, "'");
}

CheckpointWrite WriteTraining(const torch::nn::Module& model,
                              const torch::optim::Optimizer& optimizer,
                              const std::string& progress) {
  return [&](torch::serialize::OutputArchive& archive) {
    archive.write("progress", c10::IValue(progress));
    internal::WritePart(archive, "model", model);
    internal::WritePart(archive, "optimizer", optimizer);
  };
}

}  // namespace

void save_checkpoint(const std::string& given, const CheckpointWrite& write,
                     const CheckpointOptions& options) {
  const std::string path = base::AbsolutePath(given);
  internal::ThrowIfError(base::WriteCheckpointFile(
      path, internal::ValueOrThrow(internal::Serialise(Named(path), write)),
      options.keep_previous()));
}

void load_checkpoint(const std::string& path, const CheckpointRead& read) {
  internal::WholeCheckpoint checkpoint = internal::ReadWholeCheckpoint(path);
  checkpoint.bytes = {};  // the memory
  try {
    read(checkpoint.archive);
  } catch (const std::exception& error) {
    internal::ThrowError(
        absl::StrCat("the checkpoint '", checkpoint.file,
                     "' does not fit: ", internal::TextOf(error)));
  }
}

void save_checkpoint(const std::string& path, const torch::nn::Module& model,
                     const torch::optim::Optimizer& optimizer,
                     const std::string& progress,
                     const CheckpointOptions& options) {
  save_checkpoint(path, WriteTraining(model, optimizer, progress), options);
}

std::string load_checkpoint(const std::string& path, torch::nn::Module& model,
                            torch::optim::Optimizer& optimizer) {
  c10::IValue progress;
  load_checkpoint(path, [&](torch::serialize::InputArchive& archive) {
    archive.read("progress", progress);
    internal::ReadPart(archive, "model", model);
    internal::ReadPart(archive, "optimizer", optimizer);
  });
  return progress.toStringRef();
}

bool checkpoint_exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) ||
         std::filesystem::exists(base::PreviousGeneration(path), error);
}

CheckpointWriter::CheckpointWriter(const std::string& path,
                                   const CheckpointOptions& options)
    : path_(base::AbsolutePath(path)), options_(options) {}

// A save that a thread does.
struct CheckpointWriter::Saving {
  std::future<bool> done;  // whether it succeeds; its destructor waits
  base::ForkMark mark;
};

CheckpointWriter::~CheckpointWriter() {
  if (saving_ == nullptr || !saving_->mark.forked()) wait();
}

void CheckpointWriter::save(const CheckpointWrite& write) {
  const bool warns = wait();
  absl::StatusOr<std::string> bytes =
      internal::Serialise(Named(path_), write, last_bytes_);
  if (bytes.ok()) last_bytes_ = bytes->size();
  // Where no thread can be had, wait() does it.
  std::future<bool> done = std::async(
      std::launch::async | std::launch::deferred,
      [path = path_, keep_previous = options_.keep_previous(), warns,
       given = std::move(bytes)]() mutable {
        const absl::StatusOr<std::string> bytes = std::move(given);
        const absl::Status status =
            bytes.ok() ? base::WriteCheckpointFile(path, *bytes, keep_previous)
                       : bytes.status();
        if (!status.ok() && warns) {
          internal::Warn(
              absl::StrCat(status.message(),
                           "; going on, and not telling of it again until a "
                           "checkpoint could be written"));
        }
        return status.ok();
      });
  saving_ = std::shared_ptr<Saving>(new Saving{std::move(done), {}},
                                    base::DeleteUnlessForked<Saving>());
}

void CheckpointWriter::save(const torch::nn::Module& model,
                            const torch::optim::Optimizer& optimizer,
                            const std::string& progress) {
  save(WriteTraining(model, optimizer, progress));
}

bool CheckpointWriter::wait() {
  if (saving_ == nullptr) return saved_;
  if (saving_->mark.forked()) {
    internal::ThrowError(absl::StrCat(
        "CheckpointWriter: this process was forked while ", Named(path_),
        " was being saved, and cannot wait for that: use the CheckpointWriter "
        "in the process that made it, and make another here"));
  }
  const std::shared_ptr<Saving> saving = std::exchange(saving_, nullptr);
  saved_ = saving->done.get();
  return saved_;
}

}  // namespace hvdlite
