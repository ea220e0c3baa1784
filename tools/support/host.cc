#include "tools/support/host.h"

#include <sys/utsname.h>

#include <fstream>

namespace hvdlite::trainers {

Host ThisHost() {
  utsname system = {};
  uname(&system);
  Host host = {.name = system.nodename, .cpu = system.machine};
  // Lines "key\t: value"; on Arm there is no model name.
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      host.cpu = line.substr(colon + 2);
      break;
    }
  }
  return host;
}

}  // namespace hvdlite::trainers
