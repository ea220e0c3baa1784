// What bench_report does.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace hvdlite::bench_report {

// Prints the comparison of the runs that `arguments` name to `out`, errors to
// `err`. Returns the exit status: 0 if the runs pass, 1 if they do not, 2 for
// wrong input.
int RunBenchReport(const std::vector<std::string>& arguments, std::ostream& out,
                   std::ostream& err);

}  // namespace hvdlite::bench_report
