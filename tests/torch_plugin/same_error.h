// Checks that an operation fails with one text on all ranks.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/ops.h>
#include <hvdlite/world.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/torch_plugin/error_text.h"

namespace hvdlite {

// Expects that `statement` throws the same text on every rank of the set, with
// `part` in it, and that the set works afterwards. Collective.
template <typename Statement>
void ExpectSameError(Statement&& statement, const std::string& part,
                     const ProcessSet& process_set = {}) {
  const std::string text = ErrorText(statement);
  EXPECT_THAT(text, ::testing::HasSubstr(part));
  const int first = process_set.ranks().front();
  EXPECT_EQ(text, broadcast_object(text, first, process_set));
}

struct Failure {
  std::function<void()> call;
  std::string part;
};

// The same for each of several failures.
inline void ExpectSameErrors(const std::vector<Failure>& failures,
                             const ProcessSet& process_set = {}) {
  for (size_t i = 0; i < failures.size(); ++i) {
    SCOPED_TRACE("failure " + std::to_string(i) + ": " + failures[i].part);
    ExpectSameError(failures[i].call, failures[i].part, process_set);
  }
}

inline bool IsLast() { return rank() == size() - 1; }

}  // namespace hvdlite
