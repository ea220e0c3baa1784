// Files of which nothing half-written or damaged is ever taken for whole, in
// two generations: `path`, and the one before, `path`.previous.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::base {

std::string PreviousGeneration(const std::string& path);

// Makes `path` hold `content`, under a header with its length and checksum,
// and, if `keep_previous`, its previous generation what it held before. Content
// and names have reached the disk when it returns. Whenever the process or the
// machine ends meanwhile, one of the two files is whole; the temporary file
// that may be left over is removed by the next call for `path` on this host. On
// an error, whose text names the file and the reason, both hold what they held
// (but for one after the new content has its name already, which it keeps), and
// no temporary file stays. A limit of the file's size is an error, too, no
// signal. Blocks as long as the disk does.
absl::Status WriteCheckpointFile(const std::string& path,
                                 absl::string_view content, bool keep_previous);

// What WriteCheckpointFile was given. A plain archive of LibTorch's, as the
// first release wrote them, is returned as it is, unchecked. NotFound if there
// is no such file; DataLoss, with the file and what is wrong, if it cannot be
// read, is cut off, damaged, or none of the two.
absl::StatusOr<std::string> ReadCheckpointFile(const std::string& file);

}  // namespace hvdlite::base
