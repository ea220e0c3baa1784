#include "torch_plugin/throw_status.h"

#include <hvdlite/errors.h>

namespace hvdlite::internal {

void ThrowError(std::string message) {
  throw c10::Error(std::move(message), {});
}

void ThrowIfError(const absl::Status& status) {
  if (status.ok()) return;
  std::string message(status.message());
  if (absl::IsUnavailable(status)) throw WorldBroken(std::move(message));
  ThrowError(std::move(message));
}

}  // namespace hvdlite::internal
