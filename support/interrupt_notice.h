// A word about what is lost, from a program that a signal ends.
#pragma once

#include <string>

namespace hvdlite::support {

// From now on SIGINT and SIGTERM still end this process, so that a shell says
// 130 and 143, but first standard error gets a line:
//
//   scale_sim: interrupted: no file is written; the same command begins anew
//
// `program` and `means` are its parts. Of a launcher's ranks the first alone
// tells. A signal that is ignored, or that something else takes later
// (SignalPipe, elastic::StopSignals), is left to that. Called once, by main(),
// before there are threads.
void TellIfInterrupted(const std::string& program, const std::string& means);

}  // namespace hvdlite::support
