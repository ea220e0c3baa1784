// Checkpoint files that stay whole: a reader never accepts a half-written or
// damaged file. There are two generations, `path` and `path`.previous.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::base {

std::string PreviousGeneration(const std::string& path);

// Makes `path` hold `content` under a header with its length and checksum. With
// `keep_previous`, the old content of `path` becomes its previous generation.
// Content and names have reached the disk when the function returns. If the
// process or the machine dies meanwhile, one of the two files is whole. The
// next call for `path` on this host removes the temporary file that may remain.
//
// An error names the file and the reason. Both files then hold what they held
// before, except if the error comes after the new content has its name. No
// temporary file remains. A file size limit is an error, not a signal. Blocks
// as long as the disk does.
absl::Status WriteCheckpointFile(const std::string& path,
                                 absl::string_view content, bool keep_previous);

// Returns the content that WriteCheckpointFile() was given. A plain LibTorch
// archive, as the first release wrote it, is returned unchecked. NotFound if
// there is no such file. DataLoss names the file and the reason: it cannot be
// read, is truncated, is damaged or is not a checkpoint.
absl::StatusOr<std::string> ReadCheckpointFile(const std::string& file);

}  // namespace hvdlite::base
