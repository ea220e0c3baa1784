// Files that a training will write.
#pragma once

#include <string>

namespace hvdlite::trainers {

// Throws InputError that names `file` if a file cannot be made beside it.
// Leaves `file` as it is.
void RequireWritable(const std::string& file);

}  // namespace hvdlite::trainers
