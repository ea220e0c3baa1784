#include "tests/testing/golden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace hvdlite::testing {
namespace {

// "== SUITE.TEST", followed by its texts: "- first line", "  second line".
constexpr char kOfTest[] = "== ";
constexpr char kFirst[] = "- ";
constexpr char kMore[] = "  ";

using Texts = std::map<std::string, std::vector<std::string>>;

Texts ReadTexts() {
  Texts texts;
  std::string test;
  std::ifstream file(HVDLITE_GOLDEN_FILE);
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, kOfTest)) {
      test = line.substr(sizeof(kOfTest) - 1);
    } else if (absl::StartsWith(line, kFirst)) {
      texts[test].push_back(line.substr(sizeof(kFirst) - 1));
    } else if (!texts[test].empty()) {
      absl::StrAppend(&texts[test].back(), "\n",
                      absl::StartsWith(line, kMore) ? line.substr(2) : line);
    }
  }
  return texts;
}

void WriteTexts(const Texts& texts) {
  std::ofstream file(HVDLITE_GOLDEN_FILE);
  for (const auto& [test, said] : texts) {
    file << kOfTest << test << "\n";
    for (const std::string& text : said) {
      file << kFirst
           << absl::StrReplaceAll(text, {{"\n\n", "\n\n  "}, {"\n", "\n  "}})
           << "\n";
    }
  }
}

std::string NameOf(const ::testing::TestInfo& test) {
  return absl::StrCat(test.test_suite_name(), ".", test.name());
}

std::set<std::string> AllTests() {
  std::set<std::string> names;
  const auto& unit = *::testing::UnitTest::GetInstance();
  for (int s = 0; s < unit.total_test_suite_count(); ++s) {
    const ::testing::TestSuite& suite = *unit.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      names.insert(NameOf(*suite.GetTestInfo(t)));
    }
  }
  return names;
}

class Golden : public ::testing::Environment {
 public:
  explicit Golden(bool update) : update_(update) {}

  void Expect(absl::string_view said) {
    const std::string text(absl::StripSuffix(said, "\n"));
    const std::string test =
        NameOf(*::testing::UnitTest::GetInstance()->current_test_info());
    const size_t number = said_[test].size();
    said_[test].push_back(text);
    if (update_) return;
    const std::vector<std::string>& expected = expected_[test];
    EXPECT_EQ(text, number < expected.size() ? expected[number] : "")
        << "text " << number + 1 << " of " << test << " in "
        << HVDLITE_GOLDEN_FILE << "; --update writes the file again";
  }

  void TearDown() override {
    Texts texts = expected_;
    for (const auto& [test, said] : said_) {
      if (!update_) {
        EXPECT_EQ(said.size(), expected_[test].size()) << test;
      }
      texts[test] = said;
    }
    const std::set<std::string> tests = AllTests();
    std::erase_if(texts, [&](const auto& entry) {
      if (tests.contains(entry.first)) return false;
      EXPECT_TRUE(update_) << "there is no test " << entry.first;
      return true;
    });
    if (update_) WriteTexts(texts);
    said_.clear();  // --gtest_repeat
  }

 private:
  const bool update_;
  Texts expected_ = ReadTexts();
  Texts said_;
};

Golden* golden = nullptr;

}  // namespace

void ExpectGolden(const std::string& text) { golden->Expect(text); }

}  // namespace hvdlite::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  const bool update = argc == 2 && std::string(argv[1]) == "--update";
  if (argc > 1 && !update) {
    std::fprintf(stderr, "unknown argument %s; the only one is --update\n",
                 argv[1]);
    return 2;
  }
  hvdlite::testing::golden = new hvdlite::testing::Golden(update);
  ::testing::AddGlobalTestEnvironment(hvdlite::testing::golden);
  return RUN_ALL_TESTS();
}
