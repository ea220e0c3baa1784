#include "torch_plugin/throw_status.h"

#include <hvdlite/errors.h>

#include <exception>

#include "base/config/config_loader.h"
#include "negotiation/world/current_world.h"
#include "negotiation/world/world.h"

namespace hvdlite {
namespace internal {

void ThrowError(std::string message) {
  throw c10::Error(std::move(message), {});
}

void ThrowIfError(const absl::Status& status) {
  if (status.ok()) return;
  std::string message(status.message());
  if (absl::IsUnavailable(status)) throw WorldBroken(std::move(message));
  ThrowError(std::move(message));
}

void ThrowIfConfigError(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) {
    throw c10::ValueError(std::string(status.message()), {});
  }
  ThrowIfError(status);
}

absl::Status StatusOfOperation(absl::FunctionRef<void()> operation) {
  try {
    operation();
    return absl::OkStatus();
  } catch (const WorldBroken& error) {
    return absl::UnavailableError(error.what_without_backtrace());
  } catch (const c10::Error& error) {
    return absl::InvalidArgumentError(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

void ThrowIfForked() { ThrowIfError(CheckNotForked()); }

std::shared_ptr<World> CurrentWorld() {
  ThrowIfForked();
  std::shared_ptr<World> world = CurrentWorldOrNull();
  if (world == nullptr) {
    ThrowError("hvdlite is not initialised: call hvdlite::init() first");
  }
  return world;
}

}  // namespace internal

// Functions that Config declares. They are not in config_loader.cc, since
// symbols of a static library stay hidden inside libhvdlite.so.

Config Config::from_env() {
  absl::StatusOr<Config> config = LoadConfig(base::ProcessEnvironment());
  internal::ThrowIfConfigError(config.status());
  return WithAbsolutePaths(*std::move(config));
}

std::string Config::describe() const { return DescribeConfig(*this); }

}  // namespace hvdlite
