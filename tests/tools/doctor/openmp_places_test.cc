#include "tools/doctor/openmp_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(PlacesTest, ReadsListsAndIntervals) {
  EXPECT_THAT(ParsePlaces("{0,1},{2,3}"),
              Optional(ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3))));
  EXPECT_THAT(ParsePlaces("{0:2}:2:4"),
              Optional(ElementsAre(ElementsAre(0, 1), ElementsAre(4, 5))));
  EXPECT_THAT(
      ParsePlaces("{0:2:8},{3}:2"),
      Optional(ElementsAre(ElementsAre(0, 8), ElementsAre(3), ElementsAre(4))));
}

TEST(PlacesTest, WhatIsNoListIsNone) {
  for (const char* text :
       {"", "cores", "{", "{}", "{0", "{0},", "!{1}", "{a}", "{0:0}", "{0:1:}",
        "{-1}", "{0}:2:-1", "{0}x", "{0:99999999}", "{0}:9:2147483647"}) {
    EXPECT_FALSE(ParsePlaces(text).has_value()) << text;
  }
}

// CPUs n and n + 4 are threads of core n.
bool Binds(const std::string& places, const std::string& bind,
           int threads = 4) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (!places.empty()) variables.emplace_back("OMP_PLACES", places);
  if (!bind.empty()) variables.emplace_back("OMP_PROC_BIND", bind);
  return BindsOneThreadPerCore(base::FakeEnvironment(variables), threads,
                               [](int cpu) { return std::to_string(cpu % 4); });
}

TEST(OneThreadPerCoreTest, CoresWithBindingGiveEachThreadOne) {
  for (const char* bind : {"true", "close", "spread", "SPREAD, close", ""}) {
    EXPECT_TRUE(Binds("cores", bind)) << bind;
  }
  EXPECT_TRUE(Binds("Cores(4)", "true"));
  EXPECT_TRUE(Binds("{0,4},{1,5},{2,6},{3,7}", "close"));
  EXPECT_TRUE(Binds("{0}:4", "close"));
}

TEST(OneThreadPerCoreTest, OtherPlacesAndNoBindingDoNot) {
  EXPECT_FALSE(Binds("cores", "false"));
  EXPECT_FALSE(Binds("cores", "master"));
  EXPECT_FALSE(Binds("", "true"));
  EXPECT_FALSE(Binds("threads", "spread"));
  EXPECT_FALSE(Binds("sockets", "close"));
  EXPECT_FALSE(Binds("cores(2)", "close"));
  EXPECT_FALSE(Binds("{0}:3", "close")) << "fewer places than threads";
  EXPECT_FALSE(Binds("{0}:8", "close")) << "two places on a core";
  EXPECT_FALSE(Binds("{0,1},{2,3}", "close", 2)) << "places of two cores";
}

}  // namespace
}  // namespace hvdlite::doctor
