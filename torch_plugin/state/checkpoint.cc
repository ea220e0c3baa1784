#include <hvdlite/checkpoint.h>
#include <hvdlite/errors.h>

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
#include "base/contain_exceptions.h"
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
  // This must not fail or throw: LibTorch would end the process.
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
  } catch (const WorldBroken&) {
    throw;
  } catch (const c10::Error& error) {
    ThrowError(absl::StrCat("cannot write ", what, ": ", TextOf(error)));
  }
  if (fits) return bytes;
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot write ", what,
                   ": there is not enough memory for a copy of its content"));
}

namespace {

// An error contains the file's name.
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

}  // namespace

WholeCheckpoint ReadWholeCheckpoint(const std::string& path) {
  absl::StatusOr<WholeCheckpoint> newest = Open(path);
  if (newest.ok()) return *std::move(newest);
  const std::string why(newest.status().message());
  absl::StatusOr<WholeCheckpoint> previous =
      Open(base::PreviousGeneration(path));
  if (absl::IsNotFound(previous.status())) ThrowError(why);
  if (!previous.ok()) {
    ThrowError(absl::StrCat(why, "; the previous one cannot be read, either: ",
                            previous.status().message()));
  }
  Warn(absl::StrCat(why, "; using the previous one, '", previous->file, "'"));
  return *std::move(previous);
}

}  // namespace internal

namespace {

// Keys in the archive of a training.
constexpr char kProgress[] = "progress";
constexpr char kModel[] = "model";
constexpr char kOptimizerKey[] = "optimizer";

std::string Named(const std::string& path) {
  return absl::StrCat("the checkpoint '", path, "'");
}

CheckpointWrite WriteTraining(const torch::nn::Module& model,
                              const torch::optim::Optimizer& optimizer,
                              const std::string& progress) {
  return [&](torch::serialize::OutputArchive& archive) {
    archive.write(kProgress, c10::IValue(progress));
    internal::WriteModel(archive, kModel, model);
    internal::WriteOptimizer(archive, kOptimizerKey, optimizer);
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
  checkpoint.bytes = {};  // frees the memory
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
    archive.read(kProgress, progress);
    internal::Rollback rollback;
    rollback.Take(model);
    rollback.Take(optimizer);
    internal::ReadModel(archive, kModel, model);
    internal::ReadOptimizer(archive, kOptimizerKey, /*with_options=*/true,
                            optimizer);
    rollback.Keep();
  });
  return progress.toStringRef();
}

void write_state(torch::serialize::OutputArchive& archive,
                 const std::string& key, const torch::nn::Module& model) {
  internal::WriteModel(archive, key, model);
}

void write_state(torch::serialize::OutputArchive& archive,
                 const std::string& key,
                 const torch::optim::Optimizer& optimizer) {
  internal::WriteOptimizer(archive, key, optimizer);
}

void read_state(torch::serialize::InputArchive& archive, const std::string& key,
                torch::nn::Module& model) {
  internal::ReadModel(archive, key, model);
}

void read_state(torch::serialize::InputArchive& archive, const std::string& key,
                torch::optim::Optimizer& optimizer, bool with_options) {
  internal::ReadOptimizer(archive, key, with_options, optimizer);
}

bool checkpoint_exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) ||
         std::filesystem::exists(base::PreviousGeneration(path), error);
}

CheckpointWriter::CheckpointWriter(const std::string& path,
                                   const CheckpointOptions& options)
    : path_(base::AbsolutePath(path)), options_(options) {}

// A save that runs in a thread.
struct CheckpointWriter::Saving {
  std::future<bool> done;  // whether it succeeded; its destructor waits
  base::ForkMark mark;
};

CheckpointWriter::~CheckpointWriter() {
  if (saving_ == nullptr || !saving_->mark.forked()) wait();
}

void CheckpointWriter::save(const CheckpointWrite& write) {
  Save(write, /*throws=*/true);
}

void CheckpointWriter::Save(const CheckpointWrite& write, bool throws) {
  const bool warns = wait();
  absl::StatusOr<std::string> bytes;
  try {
    bytes = internal::Serialise(Named(path_), write, last_bytes_);
  } catch (const c10::Error& error) {
    if (throws) throw;
    bytes = absl::InternalError(error.what_without_backtrace());
  }
  if (bytes.ok()) last_bytes_ = bytes->size();
  // If no thread can be started, wait() does the work.
  std::future<bool> done = std::async(
      std::launch::async | std::launch::deferred,
      [path = path_, keep_previous = options_.keep_previous(), warns,
       given = std::move(bytes)]() mutable {
        bool written = false;
        // The destructor waits for this, too, so it must not throw.
        base::ContainExceptions([&] {
          const absl::StatusOr<std::string> bytes = std::move(given);
          const absl::Status status =
              bytes.ok()
                  ? base::WriteCheckpointFile(path, *bytes, keep_previous)
                  : bytes.status();
          written = status.ok();
          if (!written && warns) {
            internal::Warn(
                absl::StrCat(status.message(),
                             "; continuing; further failures are not logged "
                             "until a checkpoint is written"));
          }
        });
        return written;
      });
  saving_ = std::shared_ptr<Saving>(new Saving{std::move(done), {}},
                                    base::DeleteUnlessForked<Saving>());
}

void CheckpointWriter::save(const torch::nn::Module& model,
                            const torch::optim::Optimizer& optimizer,
                            const std::string& progress) {
  Save(WriteTraining(model, optimizer, progress), /*throws=*/false);
}

bool CheckpointWriter::wait() {
  if (saving_ == nullptr) return saved_;
  if (saving_->mark.forked()) {
    internal::ThrowError(absl::StrCat(
        "CheckpointWriter: this process was forked while ", Named(path_),
        " was being saved. A forked process cannot wait for this save: call "
        "wait() in the process that called save(), and create another "
        "CheckpointWriter in this process"));
  }
  const std::shared_ptr<Saving> saving = std::exchange(saving_, nullptr);
  saved_ = saving->done.get();
  return saved_;
}

}  // namespace hvdlite
