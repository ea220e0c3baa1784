// timeline_viewer: where the time of a trace went.

#include <iostream>
#include <string>
#include <vector>

#include "support/interrupt_notice.h"
#include "tools/timeline_viewer/viewer.h"

int main(int argc, char** argv) {
  hvdlite::support::TellIfInterrupted(
      "timeline_viewer", "no file is written; the same command begins anew");
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return hvdlite::timeline_viewer::RunViewer(arguments, std::cout, std::cerr);
}
