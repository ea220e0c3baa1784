// What commits, checkpoints and broadcasts have in common: states as archives
// of LibTorch's.
#pragma once

#include <hvdlite/checkpoint.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <cstddef>
#include <exception>
#include <string>

#include "absl/status/statusor.h"

namespace hvdlite::internal {

// A warning, with the rank if there is a world.
void Warn(const std::string& text);

// The text of any exception, without LibTorch's backtrace.
std::string TextOf(const std::exception& error);

// The archive that `write` fills, which may have `expected_bytes`. `what`
// completes "cannot write ...". ResourceExhausted where memory does not
// suffice; throws what `write` throws.
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

// State (such as momentum) under `name`, options (such as the learning rate)
// beside it. Drops what the optimizer does not need to continue and LibTorch
// cannot write.
void WriteOptimizer(torch::serialize::OutputArchive& archive,
                    const std::string& name,
                    torch::optim::Optimizer& optimizer);
// Replaces the state, and the options if `with_options`, by those of an
// optimizer of the same kind. The optimizer is unspecified where it throws.
void ReadOptimizer(torch::serialize::InputArchive& archive,
                   const std::string& name, bool with_options,
                   torch::optim::Optimizer& optimizer);

}  // namespace hvdlite::internal
