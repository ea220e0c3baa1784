#include <hvdlite/checkpoint.h>

#include <exception>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/checkpoint_file.h"
#include "base/logging.h"
#include "negotiation/world/world.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace {

// With the rank, if there is a world.
void Warn(const std::string& text) {
  const auto world = internal::CurrentWorldOrNull();
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

// The archive that `write` fills, which may have `expected_bytes`.
// ResourceExhausted where memory does not suffice; throws what `write` throws.
absl::StatusOr<std::string> Serialise(const std::string& path,
                                      const CheckpointWrite& write,
                                      size_t expected_bytes = 0) {
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
      "cannot write the checkpoint '", path,
      "': there is not enough memory for a copy of what it is to hold"));
}

// `archive` is then the checkpoint in `file`. An error names the file.
absl::Status Open(const std::string& file,
                  torch::serialize::InputArchive& archive) {
  try {
    const absl::StatusOr<std::string> bytes = base::ReadCheckpointFile(file);
    if (!bytes.ok()) return bytes.status();
    archive.load_from(bytes->data(), bytes->size());
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrCat(
        "the checkpoint '", file, "' cannot be read: ", TextOf(error)));
  }
}

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

CheckpointWrite WriteTraining(const torch::nn::Module& model,
                              const torch::optim::Optimizer& optimizer,
                              const std::string& progress) {
  return [&](torch::serialize::OutputArchive& archive) {
    archive.write("progress", c10::IValue(progress));
    WritePart(archive, "model", model);
    WritePart(archive, "optimizer", optimizer);
  };
}

}  // namespace

void save_checkpoint(const std::string& path, const CheckpointWrite& write,
                     const CheckpointOptions& options) {
  internal::ThrowIfError(base::WriteCheckpointFile(
      path, internal::ValueOrThrow(Serialise(path, write)),
      options.keep_previous()));
}

void load_checkpoint(const std::string& path, const CheckpointRead& read) {
  std::string file = path;
  torch::serialize::InputArchive archive;
  absl::Status opened = Open(file, archive);
  if (!opened.ok()) {
    const std::string why(opened.message());
    file = base::PreviousGeneration(path);
    archive = {};
    opened = Open(file, archive);
    if (absl::IsNotFound(opened)) internal::ThrowError(why);
    if (!opened.ok()) {
      internal::ThrowError(
          absl::StrCat(why, "; nor can the one before be: ", opened.message()));
    }
    Warn(absl::StrCat(why, "; taking the one before, '", file, "'"));
  }
  try {
    read(archive);
  } catch (const std::exception& error) {
    internal::ThrowError(absl::StrCat("the checkpoint '", file,
                                      "' does not fit: ", TextOf(error)));
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
    ReadPart(archive, "model", model);
    ReadPart(archive, "optimizer", optimizer);
  });
  return progress.toStringRef();
}

bool checkpoint_exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) ||
         std::filesystem::exists(base::PreviousGeneration(path), error);
}

CheckpointWriter::CheckpointWriter(std::string path,
                                   const CheckpointOptions& options)
    : path_(std::move(path)), options_(options) {}

CheckpointWriter::~CheckpointWriter() { wait(); }

void CheckpointWriter::save(const CheckpointWrite& write) {
  const bool warns = wait();
  absl::StatusOr<std::string> bytes = Serialise(path_, write, last_bytes_);
  if (bytes.ok()) last_bytes_ = bytes->size();
  // Where no thread can be had, wait() does it.
  saving_ = std::async(
      std::launch::async | std::launch::deferred,
      [path = path_, keep_previous = options_.keep_previous(), warns,
       given = std::move(bytes)]() mutable {
        const absl::StatusOr<std::string> bytes = std::move(given);
        const absl::Status status =
            bytes.ok() ? base::WriteCheckpointFile(path, *bytes, keep_previous)
                       : bytes.status();
        if (!status.ok() && warns) {
          Warn(absl::StrCat(status.message(),
                            "; going on, and not telling of it again until a "
                            "checkpoint could be written"));
        }
        return status.ok();
      });
}

void CheckpointWriter::save(const torch::nn::Module& model,
                            const torch::optim::Optimizer& optimizer,
                            const std::string& progress) {
  save(WriteTraining(model, optimizer, progress));
}

bool CheckpointWriter::wait() {
  if (saving_.valid()) saved_ = saving_.get();
  return saved_;
}

}  // namespace hvdlite
