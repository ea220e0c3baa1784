// Early return for absl::Status and absl::StatusOr.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define HVDLITE_STATUS_CONCAT_INNER_(a, b) a##b
#define HVDLITE_STATUS_CONCAT_(a, b) HVDLITE_STATUS_CONCAT_INNER_(a, b)

// Evaluates `expr` (an absl::Status) and returns it from the calling function
// unless it is OK.
#define HVDLITE_RETURN_IF_ERROR(expr)                                   \
  do {                                                                  \
    if (absl::Status hvdlite_status_ = (expr); !hvdlite_status_.ok()) { \
      return hvdlite_status_;                                           \
    }                                                                   \
  } while (false)

// Evaluates `expr` (an absl::StatusOr<T>); returns its status from the calling
// function if it failed, else moves the value into `lhs`.
#define HVDLITE_ASSIGN_OR_RETURN(lhs, expr) \
  HVDLITE_ASSIGN_OR_RETURN_IMPL_(           \
      HVDLITE_STATUS_CONCAT_(hvdlite_statusor_, __LINE__), lhs, expr)

#define HVDLITE_ASSIGN_OR_RETURN_IMPL_(statusor, lhs, expr) \
  auto statusor = (expr);                                   \
  if (!statusor.ok()) return std::move(statusor).status();  \
  lhs = std::move(statusor).value()
