// Files that a training will write.
#pragma once

#include <string>

namespace hvdlite::trainers {

// Throws InputError that names `file` if a file cannot be made beside it.
// Leaves `file` as it is.
void RequireWritable(const std::string& file);

// Gives `temporary`, which has been written and closed, the name `file`.
// Whatever happens meanwhile, `file` holds what it held before or all of the
// new, also after a power failure. Throws std::runtime_error that names the
// files if the system refuses.
void ReplaceFile(const std::string& temporary, const std::string& file);

}  // namespace hvdlite::trainers
