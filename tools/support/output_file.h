// Files that a training will write.
#pragma once

#include <string>

namespace hvdlite::support {

// Throws InputError that names `file` if a file cannot be made beside it, or if
// it is a directory or a device. Leaves `file` as it is.
void RequireWritable(const std::string& file);

// Makes `text` what `file` holds. Whatever happens meanwhile, it holds what it
// held before or all of the new, also after a power failure. Throws InputError
// that names `file` if that cannot be had, or if it is a directory or a device.
void WriteFile(const std::string& file, const std::string& text);

}  // namespace hvdlite::support
