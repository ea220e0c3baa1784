// Files that a training will write.
#pragma once

#include <string>

namespace hvdlite::support {

// Throws InputError that names `file` if a file cannot be made beside it, or if
// it is a directory or a device. Leaves `file` as it is.
void RequireWritable(const std::string& file);

// Gives `temporary`, which has been written and closed, the name `file`.
// Whatever happens meanwhile, `file` holds what it held before or all of the
// new, also after a power failure. Throws std::runtime_error that names the
// files if the system refuses, or if `file` is a directory or a device.
void ReplaceFile(const std::string& temporary, const std::string& file);

}  // namespace hvdlite::support
