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
    for (const std::string& directory :
         {places_.shared_memory, places_.temporary, places_.processes}) {
      std::filesystem::create_directories(directory);
    }
  }

  // Creates a file in shared memory. Its name has the user's id between the two
  // parts.
  std::string Memory(const std::string& name, const std::string& rest,
                     unsigned user = geteuid()) {
    const std::string path =
        absl::StrCat(places_.shared_memory, "/", name, user, rest);
    std::ofstream(path) << "memory";
    return path;
  }
  std::string Segment(const std::string& job, unsigned user = geteuid()) {
    return Memory("vader_segment.my.host.", "." + job + ".0", user);
  }
  // Creates a session directory in the same way.
  std::string Directory(const std::string& name, const std::string& rest,
                        unsigned user = geteuid()) {
    const std::string path =
        absl::StrCat(places_.temporary, "/", name, user, rest);
    std::filesystem::create_directories(path);
    return path;
  }
  std::string Session(int launcher, unsigned user = geteuid()) {
    return Directory("ompi.my.host.", absl::StrCat("/pid.", launcher, "/0"),
                     user);
  }
  void AddProcess(int id, const std::string& maps) {
    const std::string directory = absl::StrCat(places_.processes, "/", id);
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/maps") << maps;
  }
  static bool Exists(const std::string& path) {
    return std::filesystem::exists(path);
  }

  const hvdlite::timeline::TemporaryDirectory directory_;
  const LeftoverPlaces places_ = {.host = "my.host",
                                  .shared_memory = directory_.File("shm"),
                                  .temporary = directory_.File("tmp"),
                                  .processes = directory_.File("proc")};
  const absl::Time later_ = absl::Now() + absl::Seconds(61);
};

TEST_F(LeftoversTest, UnmappedSegmentsAreRemoved) {
  const std::string dead = Segment("15260001");
  const std::string alive = Segment("39050001");
  AddProcess(12, absl::StrCat("7f00-7f01 rw-s 00000000 00:18 17   ", alive,
                              "\n7f02-7f03 r-xp 0 0 1 /lib/libc.so.6\n"));
  EXPECT_EQ(RemoveLeftovers(places_, later_), 1);
  EXPECT_FALSE(Exists(dead));
  EXPECT_TRUE(Exists(alive));
}

TEST_F(LeftoversTest, LeftoversOfOpenMpi5AreRemoved) {
  const std::string segment = Memory("sm_segment.my.host.", ".1.0");
  const std::string dead = Directory("prterun.my.17.", "/0");
  const std::string alive = Directory("prterun.my.12.", "/0");
  const std::string of_others =
      Directory("prterun.my.17.", "/0", geteuid() + 1);
  AddProcess(12, "");
  EXPECT_EQ(RemoveLeftovers(places_, later_), 2);
  EXPECT_FALSE(Exists(segment));
  EXPECT_FALSE(Exists(dead));
  EXPECT_TRUE(Exists(alive));
  EXPECT_TRUE(Exists(of_others));
}

TEST_F(LeftoversTest, HostNameMayLackItsDomain) {
  const std::string segment = Memory("vader_segment.my.", ".1.0");
  const std::string session = Directory("ompi.my.", "/pid.7/0");
  EXPECT_EQ(RemoveLeftovers(places_, later_), 2);
  EXPECT_FALSE(Exists(segment));
  EXPECT_FALSE(Exists(session));
}

TEST_F(LeftoversTest, YoungForeignAndOtherFilesAreKept) {
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

TEST_F(LeftoversTest, NothingIsRemovedIfAProcessCannotBeExamined) {
  const std::string segment = Segment("1");
  std::filesystem::create_directories(places_.processes + "/12");
  EXPECT_EQ(RemoveLeftovers(places_, later_), 0);
  EXPECT_TRUE(Exists(segment));
  // The file `maps` can be opened but not read.
  std::filesystem::create_directories(places_.processes + "/12/maps");
  EXPECT_EQ(RemoveLeftovers(places_, later_), 0);
  EXPECT_TRUE(Exists(segment));
}

TEST_F(LeftoversTest, SessionsOfEndedLaunchersAreRemoved) {
  const std::string dead = Session(17);
  const std::string alive = Session(12);
  const std::string of_others = Session(17, geteuid() + 1);
  AddProcess(12, "");
  EXPECT_EQ(RemoveLeftovers(places_, later_), 1);
  EXPECT_FALSE(Exists(dead));
  EXPECT_TRUE(Exists(alive));
  EXPECT_TRUE(Exists(of_others));
}

TEST_F(LeftoversTest, SessionsOfAnEndedJobAreRemovedImmediately) {
  const std::string ended = Session(17);
  const std::string other = Session(12);
  const std::string of_others = Session(17, geteuid() + 1);
  const std::string dvm = Directory("prte.my.", "/dvm.17");
  const std::string other_dvm = Directory("prte.my.", "/dvm.12");
  const std::string top = Directory("prterun.my.17.", "");
  AddProcess(18, "");
  EXPECT_EQ(RemoveSessionsOf(18, places_), 0);
  EXPECT_EQ(RemoveSessionsOf(17, places_), 3);
  EXPECT_FALSE(Exists(ended));
  EXPECT_FALSE(Exists(dvm));
  EXPECT_FALSE(Exists(top));
  EXPECT_TRUE(Exists(other));
  EXPECT_TRUE(Exists(of_others));
  EXPECT_TRUE(Exists(other_dvm));
  EXPECT_EQ(RemoveSessionsOf(17, places_), 0);
}

TEST_F(LeftoversTest, LinksToOtherDirectoriesAreNotFollowed) {
  const std::string elsewhere = directory_.File("elsewhere");
  std::filesystem::create_directories(elsewhere + "/pid.17");
  std::filesystem::create_symlink(
      elsewhere, absl::StrCat(places_.temporary, "/ompi.my.host.", geteuid()));
  EXPECT_EQ(RemoveSessionsOf(17, places_), 0);
  EXPECT_TRUE(Exists(elsewhere + "/pid.17"));
}

}  // namespace
}  // namespace hvdlite::launch
