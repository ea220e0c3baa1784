// Converts statuses to exceptions for the public API, and back.
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

// Does nothing if the status is OK. Otherwise throws WorldBroken for
// Unavailable and c10::Error for everything else, with the status's text.
void ThrowIfError(const absl::Status& status);

// Like ThrowIfError, but throws c10::ValueError, which is a c10::Error, for
// InvalidArgument, the status of a bad configuration.
void ThrowIfConfigError(const absl::Status& status);

// Returns what a public operation throws as a status.
absl::Status StatusOfOperation(absl::FunctionRef<void()> operation);

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  ThrowIfError(value.status());
  return *std::move(value);
}

// Throws c10::Error in a process that was forked from a rank. Call it first in
// public functions that do not begin with CurrentWorld(), before they take a
// lock.
void ThrowIfForked();

// The world of this process. Throws c10::Error if there is none.
std::shared_ptr<World> CurrentWorld();

}  // namespace hvdlite::internal
