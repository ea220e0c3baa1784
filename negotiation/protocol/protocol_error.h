// The error of a message that breaks the protocol of negotiation.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hvdlite::negotiation {

inline absl::Status ProtocolError(absl::string_view what) {
  return absl::InternalError(
      absl::StrCat("negotiation: ", what,
                   "; all ranks must run the same version of hvdlite"));
}

}  // namespace hvdlite::negotiation
