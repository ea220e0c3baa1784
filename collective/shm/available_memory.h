// AvailableMemory: how much memory this process can still have.
#pragma once

#include <cstddef>
#include <string>

namespace hvdlite::collective {

// Bytes that this process can have without swapping, and without being killed
// for them: what the system has available, or what the memory limits of its
// cgroup (version 1 or 2) and of those above leave, if that is less. File pages
// count as available, since the system drops them where memory is wanted. What
// cannot be read does not limit. `root` is that of the file system: another one
// in tests.
size_t AvailableMemory(const std::string& root = "/");

}  // namespace hvdlite::collective
