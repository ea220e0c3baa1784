#include "torch_plugin/config_loader.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {

Config Config::from_env() {
  return internal::ValueOrThrow(LoadConfig(base::ProcessEnvironment()));
}

}  // namespace hvdlite
