// CPUs divided among processes.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// The CPUs that the calling thread may use, in ascending order. Throws
// std::system_error if the system does not tell.
std::vector<int> AllowedCpus();

// Binds the calling thread, and the threads and processes that it starts from
// now on, to `cpus`. Throws std::system_error if the system refuses.
void BindThread(const std::vector<int>& cpus);

// `cpus` cut into `shares` runs of neighbours, the first ones with one more
// where they cannot be equal. Throws InputError that names both numbers if
// there are more shares than CPUs.
std::vector<std::vector<int>> DivideCpus(const std::vector<int>& cpus,
                                         int64_t shares);

}  // namespace hvdlite::trainers
