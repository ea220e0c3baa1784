#include "tools/hvdliterun/rank/leftovers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/testing/fakes/test_files.h"

namespace hvdlite::launch {
namespace {

class LeftoversTest : public ::testing::Test {
 protected:
  LeftoversTest() {
    for (const std::string& folder :
         {places_.shared_memory, places_.temporary, places_.processes}) {
      std::filesystem::create_directories(folder);
    }
  }

  std::string Segment(const std::string& job, unsigned user = geteuid()) {
    const std::string path = absl::StrCat(
        places_.shared_memory, "/vader_segment.my.host.", user, ".", job, ".0");
    std::ofstream(path) << "memory";
    return path;
  }
  std::string Session(int launcher, unsigned user = geteuid()) {
    const std::string path = absl::StrCat(places_.temporary, "/ompi.my.host.",
                                          user, "/pid.", launcher, "/0");
    std::filesystem::create_directories(path);
    return path;
  }
  void AddProcess(int id, const std::string& maps) {
    const std::string folder = absl::StrCat(places_.processes, "/", id);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/maps") << maps;
  }
  static bool Exists(const std::string& path) {
    return std::filesystem::exists(path);
  }

  const hvdlite::timeline::TemporaryFolder folder_;
  const LeftoverPlaces places_ = {.host = "my.host",
                                  .shared_memory = folder_.File("shm"),
                                  .temporary = folder_.File("tmp"),
                                  .processes = folder_.File("proc")};
  const absl::Time later_ = absl::Now() + absl::Seconds(61);
};

TEST_F(LeftoversTest, SegmentsThatNobodyMapsGo) {
  const std::string dead = Segment("15260001");
  const std::string alive = Segment("39050001");
  AddProcess(12, absl::StrCat("7f00-7f01 rw-s 00000000 00:18 17   ", alive,
                              "\n7f02-7f03 r-xp 0 0 1 /lib/libc.so.6\n"));
  EXPECT_EQ(RemoveLeftovers(places_, later_), 1);
  EXPECT_FALSE(Exists(dead));
  EXPECT_TRUE(Exists(alive));
}

TEST_F(LeftoversTest, WhatOpenMpi5LeavesGoes) {
  const std::string segment = absl::StrCat(
      places_.shared_memory, "/sm_segment.my.host.", geteuid(), ".1.0");
  std::ofstream(segment) << "memory";
  const auto session = [this](const std::string& name) {
    std::string path = absl::StrCat(places_.temporary, "/", name, "/0");
    std::filesystem::create_directories(path);
    return path;
  };
  const std::string dead = session(absl::StrCat("prterun.my.17.", geteuid()));
  const std::string alive = session(absl::StrCat("prterun.my.12.", geteuid()));
  const std::string of_others =
      session(absl::StrCat("prterun.my.17.", geteuid() + 1));
  AddProcess(12, "");
  EXPECT_EQ(RemoveLeftovers(places_, later_), 2);
  EXPECT_FALSE(Exists(segment));
  EXPECT_FALSE(Exists(dead));
  EXPECT_TRUE(Exists(alive));
  EXPECT_TRUE(Exists(of_others));
}

TEST_F(LeftoversTest, TheHostMayBeNamedWithoutItsDomain) {
  const std::string segment = absl::StrCat(
      places_.shared_memory, "/vader_segment.my.", geteuid(), ".1.0");
  std::ofstream(segment) << "memory";
  const std::string session =
      absl::StrCat(places_.temporary, "/ompi.my.", geteuid(), "/pid.7/0");
  std::filesystem::create_directories(session);
  EXPECT_EQ(RemoveLeftovers(places_, later_), 2);
  EXPECT_FALSE(Exists(segment));
  EXPECT_FALSE(Exists(session));
}

TEST_F(LeftoversTest, WhatIsYoungOrOthersOrSomethingElseStays) {
  const std::string young = Segment("1");
  EXPECT_EQ(RemoveLeftovers(places_, absl::Now() + absl::Seconds(50)), 0);
  EXPECT_TRUE(Exists(young));
  const std::string of_others = Segment("2", geteuid() + 1);
  const std::string other = places_.shared_memory + "/vader_segment";
  std::ofstream(other) << "x";
  EXPECT_EQ(RemoveLeftovers(places_, later_), 1);
  EXPECT_TRUE(Exists(of_others));
  EXPECT_TRUE(Exists(other));
}

TEST_F(LeftoversTest, NothingGoesWhereAProcessCannotBeLookedAt) {
  const std::string segment = Segment("1");
  std::filesystem::create_directories(places_.processes + "/12");
  EXPECT_EQ(RemoveLeftovers(places_, later_), 0);
  EXPECT_TRUE(Exists(segment));
  // Its maps open, and cannot be read.
  std::filesystem::create_directories(places_.processes + "/12/maps");
  EXPECT_EQ(RemoveLeftovers(places_, later_), 0);
  EXPECT_TRUE(Exists(segment));
}

TEST_F(LeftoversTest, SessionsOfLaunchersThatAreNoMoreGo) {
  const std::string dead = Session(17);
  const std::string alive = Session(12);
  const std::string of_others = Session(17, geteuid() + 1);
  AddProcess(12, "");
  EXPECT_EQ(RemoveLeftovers(places_, later_), 1);
  EXPECT_FALSE(Exists(dead));
  EXPECT_TRUE(Exists(alive));
  EXPECT_TRUE(Exists(of_others));
}

TEST_F(LeftoversTest, SessionsOfAJobThatHasEndedGoAtOnce) {
  const std::string ended = Session(17);
  const std::string other = Session(12);
  const std::string of_others = Session(17, geteuid() + 1);
  const std::string prte =
      absl::StrCat(places_.temporary, "/prte.my.", geteuid());
  std::filesystem::create_directories(prte + "/dvm.17/job");
  std::filesystem::create_directories(prte + "/dvm.12/job");
  const std::string top =
      absl::StrCat(places_.temporary, "/prterun.my.17.", geteuid());
  std::filesystem::create_directories(top + "/1");
  AddProcess(18, "");
  EXPECT_EQ(RemoveSessionsOf(18, places_), 0);
  EXPECT_EQ(RemoveSessionsOf(17, places_), 3);
  EXPECT_FALSE(Exists(ended));
  EXPECT_FALSE(Exists(prte + "/dvm.17"));
  EXPECT_FALSE(Exists(top));
  EXPECT_TRUE(Exists(other));
  EXPECT_TRUE(Exists(of_others));
  EXPECT_TRUE(Exists(prte + "/dvm.12/job"));
  EXPECT_EQ(RemoveSessionsOf(17, places_), 0);
}

TEST_F(LeftoversTest, LinksToOtherFoldersAreNotFollowed) {
  const std::string elsewhere = folder_.File("elsewhere");
  std::filesystem::create_directories(elsewhere + "/pid.17");
  std::filesystem::create_symlink(
      elsewhere, absl::StrCat(places_.temporary, "/ompi.my.host.", geteuid()));
  EXPECT_EQ(RemoveSessionsOf(17, places_), 0);
  EXPECT_TRUE(Exists(elsewhere + "/pid.17"));
}

}  // namespace
}  // namespace hvdlite::launch
