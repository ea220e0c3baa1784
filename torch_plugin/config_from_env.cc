// What Config declares. Here and not in config.cc: the symbols of a static
// library stay hidden inside libhvdlite.so.
#include "negotiation/world/config_loader.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {

Config Config::from_env() {
  return internal::ValueOrThrow(LoadConfig(base::ProcessEnvironment()));
}

std::string Config::describe() const { return DescribeConfig(*this); }

}  // namespace hvdlite
