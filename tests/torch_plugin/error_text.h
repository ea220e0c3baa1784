// Text of the c10::Error that a statement throws.
#pragma once

#include <c10/util/Exception.h>

#include <string>

namespace hvdlite {

template <typename Statement>
std::string ErrorText(Statement&& statement) {
  try {
    statement();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace hvdlite
