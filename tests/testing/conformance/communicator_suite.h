// The test suite of communicators, and what it has to know about a backend.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "collective/communicator.h"

namespace hvdlite::testing {

struct ConformanceBackend {
  std::string name;  // letters and digits
  // Makes a new world, and runs the body on every rank of it that is in this
  // process, each with its communicator.
  std::function<void(
      const std::function<void(collective::Communicator&)>& body)>
      run_ranks;
};

inline void PrintTo(const ConformanceBackend& backend, std::ostream* out) {
  *out << backend.name;
}

inline std::string BackendName(
    const ::testing::TestParamInfo<ConformanceBackend>& info) {
  return info.param.name;
}

class CommunicatorConformance
    : public ::testing::TestWithParam<ConformanceBackend> {
 protected:
  void Run(const std::function<void(collective::Communicator&)>& body) {
    GetParam().run_ranks(body);
  }
};

}  // namespace hvdlite::testing
