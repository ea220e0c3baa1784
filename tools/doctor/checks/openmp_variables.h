// KMP_ and GOMP_ variables, which only some OpenMP runtimes read.
#pragma once

#include <optional>
#include <set>
#include <string>

namespace hvdlite::doctor {

// Why nothing reads a variable, and what does its work here; may be empty.
struct Unread {
  std::string why;
  std::string instead = "";
};

// Whether runtimes of these families (OpenMpRuntime) leave a KMP_ or GOMP_
// variable unread; nullopt: one reads it, or no family is known.
std::optional<Unread> UnreadByOpenMp(const std::string& name,
                                     const std::string& value,
                                     const std::set<std::string>& families);

// What libgomp takes instead of a KMP_ variable with this value; empty: there
// is nothing like it.
std::string GnuInsteadOfKmp(const std::string& name, const std::string& value);

}  // namespace hvdlite::doctor
