// timeline_viewer shows where the time of a trace went, and why.

#include <iostream>
#include <string>
#include <vector>

#include "support/interrupt_notice.h"
#include "tools/timeline_viewer/viewer.h"

int main(int argc, char** argv) {
  hvdlite::support::TellIfInterrupted(
      "timeline_viewer", "no file is written; run the same command again");
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return hvdlite::timeline_viewer::RunViewer(arguments, std::cout, std::cerr);
}
