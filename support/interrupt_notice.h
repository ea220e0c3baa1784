// Prints what is lost when a signal ends the program.
#pragma once

#include <string>

namespace hvdlite::support {

// From now on SIGINT and SIGTERM first print a line to standard error and then
// end this process as before (shells show 130 and 143):
//
//   scale_sim: interrupted: no file is written; run the same command again
//
// The line consists of `program` and `means`. Of the ranks of a launcher only
// the first prints it. Ignored signals stay ignored; later handlers
// (SignalPipe, elastic::StopSignals) replace this one. main() calls it once,
// before there are threads.
void TellIfInterrupted(const std::string& program, const std::string& means);

}  // namespace hvdlite::support
