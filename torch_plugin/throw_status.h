// Turns what fails into exceptions, at the edge of the public API, and back.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hvdlite::internal {

class World;

// Throws c10::Error with `message`, without a C++ backtrace.
[[noreturn]] void ThrowError(std::string message);

// Nothing if OK; else WorldBroken for Unavailable and c10::Error for
// everything else, with the status's text.
void ThrowIfError(const absl::Status& status);

// As ThrowIfError, but c10::ValueError, which is a c10::Error, for
// InvalidArgument: of a configuration.
void ThrowIfConfigError(const absl::Status& status);

// What a public operation throws, as a status.
absl::Status StatusOfOperation(absl::FunctionRef<void()> operation);

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  ThrowIfError(value.status());
  return *std::move(value);
}

// Throws c10::Error in a process that was forked from a rank. What does not
// begin with CurrentWorld() begins with this, before it takes a lock.
void ThrowIfForked();

// The world of this process; throws c10::Error where there is none.
std::shared_ptr<World> CurrentWorld();

}  // namespace hvdlite::internal
