// What a benchmark ran on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/environment.h"

namespace hvdlite::tools {

// Processor, cores, memory, kernel, compiler, version of the source (`commit`,
// or what git says about the folder it was compiled from) and the environment's
// variables that change how MPI, memory and hvdlite behave.
std::map<std::string, std::string> DescribeMachine(
    const base::Environment& environment, const std::string& commit);

// The cores that this thread may use, as "0" or "0,1" (hyperthreads count).
std::string AllowedCpus();

// Whether every rank may use one processor only (or the threads of one core),
// and no two the same; `allowed` has each rank's AllowedCpus() and `node` its
// host's name.
bool BoundToOneCoreEach(const std::vector<std::string>& allowed,
                        const std::vector<std::string>& node);

}  // namespace hvdlite::tools
