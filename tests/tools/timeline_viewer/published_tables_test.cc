// Traces that are generated from published tables reproduce the tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/testing/fakes/test_files.h"
#include "tools/timeline_viewer/viewer.h"

namespace hvdlite::timeline_viewer {
namespace {

using ::testing::HasSubstr;

struct PublishedRow {
  std::string name;
  std::string wall_ms;
  std::string self_ms;
  std::string average_ms;
  int64_t occurrences;
};

std::vector<PublishedRow> ReadTable(const std::string& compiler) {
  std::ifstream file(HVDLITE_SOURCE_DIRECTORY
                     "/tools/timeline_viewer/tables/a64fx_negotiation.json");
  const nlohmann::json tables = nlohmann::json::parse(file);
  std::vector<PublishedRow> rows;
  for (const auto& row : tables["tables"][compiler]) {
    rows.push_back({row[0], row[1], row[2], row[3], row[4]});
  }
  return rows;
}

int64_t Microseconds(const std::string& ms) {
  double value = 0;
  EXPECT_TRUE(absl::SimpleAtod(ms, &value)) << ms;
  return static_cast<int64_t>(value * 1000 + 0.5);
}

// Divides `whole` into `parts` of nearly equal size and returns part `index`.
int64_t Part(int64_t whole, int64_t parts, int64_t index) {
  return whole * (index + 1) / parts - whole * index / parts;
}

// A Horovod timeline whose events have the table's sums. It has one tensor,
// with alternating negotiations and reductions.
std::string TraceOf(const std::vector<PublishedRow>& table) {
  std::string text = "[\n";
  int64_t now_us = 0;
  const auto begin = [&](const std::string& name) {
    absl::StrAppend(&text, R"({"ph":"B","name":")", name, R"(","ts":)", now_us,
                    R"(,"pid":1},)", "\n");
  };
  const auto end = [&] {
    absl::StrAppend(&text, R"({"ph":"E","ts":)", now_us, R"(,"pid":1},)", "\n");
  };
  const PublishedRow& negotiate = table[0];
  const PublishedRow& allreduce = table[1];
  for (int64_t i = 0; i < allreduce.occurrences; ++i) {
    begin(negotiate.name);
    now_us += Part(Microseconds(negotiate.wall_ms), negotiate.occurrences, i);
    end();
    begin(allreduce.name);
    for (size_t phase = 2; phase < 5; ++phase) {
      const PublishedRow& row = table[phase];
      if (i >= row.occurrences) continue;
      begin(row.name);
      now_us += Part(Microseconds(row.wall_ms), row.occurrences, i);
      end();
    }
    now_us += Part(Microseconds(allreduce.self_ms), allreduce.occurrences, i);
    end();
  }
  return text;
}

class PublishedTablesTest : public ::testing::Test {
 protected:
  std::string Run(const std::vector<std::string>& arguments) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(RunViewer(arguments, out, err), 0);
    EXPECT_EQ(err.str(), "");
    return out.str();
  }

  std::string Write(const std::string& compiler) {
    const std::string path = directory_.File(compiler + ".json");
    timeline::WriteFile(path, TraceOf(ReadTable(compiler)));
    return path;
  }

  const timeline::TemporaryDirectory directory_;
};

TEST_F(PublishedTablesTest, EveryCellIsReproduced) {
  for (const char* const compiler : {"arm", "gnu"}) {
    std::vector<std::string> lines =
        absl::StrSplit(Run({"--csv", Write(compiler)}), '\n');
    for (const PublishedRow& row : ReadTable(compiler)) {
      EXPECT_THAT(
          lines,
          ::testing::Contains(::testing::AllOf(
              ::testing::StartsWith(row.name + ","),
              HasSubstr(absl::StrCat(",", row.wall_ms, ",", row.self_ms, ",",
                                     row.average_ms, ",", row.occurrences)))))
          << compiler;
    }
  }
}

TEST_F(PublishedTablesTest, DifferenceIsTheNegotiationAndCopiesAreSlow) {
  const std::string report = Run({"diff", Write("arm"), Write("gnu")});
  EXPECT_THAT(report, HasSubstr("NEGOTIATE_ALLREDUCE explains 94 % of"));
  EXPECT_THAT(report, HasSubstr("A copy into the fusion buffer takes 5.7 times"
                                " as long in B, a copy out of it 4.4 times"));
}

TEST_F(PublishedTablesTest, NegotiationIsTheFirstFindingOfTheSlowRun) {
  const std::string report = Run({"why", Write("gnu")});
  EXPECT_THAT(report, HasSubstr("1. Tensors are negotiated while none is "
                                "reduced: 85 % of the run"));
}

}  // namespace
}  // namespace hvdlite::timeline_viewer
