// dev/testbed runs these tests on several simulated hosts. Ranks on one host
// share its memory; ranks on different hosts see different machines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "collective/mpi/mpi_communicator.h"

namespace hvdlite::collective {
namespace {

Topology WorldTopology() {
  const auto session = MpiSession::Start();
  return session.ok() ? (*session)->topology() : Topology();
}

std::string HostOf(const Topology& topology, int rank) {
  return "host" + std::to_string(topology.cross_rank_of_rank[rank]);
}

// Every rank writes a file in `directory`. Returns which of them this rank
// sees.
std::vector<bool> VisibleFiles(const Topology& topology,
                               const std::string& directory) {
  const auto path = [&](int rank) {
    return directory + "/testbed_test." + std::to_string(rank);
  };
  std::ofstream(path(topology.rank)) << topology.rank;
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<bool> visible;
  for (int rank = 0; rank < topology.size; ++rank) {
    visible.push_back(access(path(rank).c_str(), F_OK) == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  unlink(path(topology.rank).c_str());
  return visible;
}

std::vector<bool> RanksOfThisHost(const Topology& topology) {
  std::vector<bool> ranks;
  for (const int host : topology.cross_rank_of_rank) {
    ranks.push_back(host == topology.cross_rank);
  }
  return ranks;
}

// The tests run with two ranks on the first host and one on the second.
TEST(TestbedTest, RanksFillTheSlotsOfTheHostsInOrder) {
  const Topology topology = WorldTopology();
  ASSERT_EQ(topology.size, 3);
  EXPECT_THAT(topology.cross_rank_of_rank, ::testing::ElementsAre(0, 0, 1));
  EXPECT_EQ(topology.cross_size, 2);
  EXPECT_EQ(topology.local_size, topology.rank < 2 ? 2 : 1);
  EXPECT_EQ(topology.local_rank, topology.rank % 2);
}

TEST(TestbedTest, HostsHaveDifferentNames) {
  const Topology topology = WorldTopology();
  EXPECT_THAT(topology.host_of_rank,
              ::testing::ElementsAre("host0", "host0", "host1"));
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof(name) - 1), 0);
  EXPECT_EQ(std::string(name), HostOf(topology, topology.rank));
}

TEST(TestbedTest, OnlyRanksOfAHostShareMemory) {
  const Topology topology = WorldTopology();
  EXPECT_EQ(VisibleFiles(topology, "/dev/shm"), RanksOfThisHost(topology));
}

TEST(TestbedTest, OnlyRanksOfAHostShareTemporaryFiles) {
  const Topology topology = WorldTopology();
  EXPECT_EQ(VisibleFiles(topology, "/run/tmp"), RanksOfThisHost(topology));
}

TEST(TestbedTest, HostsHaveDifferentBootIds) {
  const Topology topology = WorldTopology();
  constexpr int kLength = 36;
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  ASSERT_EQ(id.size(), size_t{kLength});
  std::string ids(static_cast<size_t>(kLength * topology.size), ' ');
  MPI_Allgather(id.data(), kLength, MPI_CHAR, ids.data(), kLength, MPI_CHAR,
                MPI_COMM_WORLD);
  std::vector<bool> same;
  for (int rank = 0; rank < topology.size; ++rank) {
    same.push_back(
        id == ids.substr(static_cast<size_t>(rank * kLength), size_t{kLength}));
  }
  EXPECT_EQ(same, RanksOfThisHost(topology));
}

// Returns the hardware address of eth0 that the kernel reports.
std::string AddressOfEth0() {
  ifreq request = {};
  std::strcpy(request.ifr_name, "eth0");
  const int descriptor = socket(AF_INET, SOCK_DGRAM, 0);
  EXPECT_EQ(ioctl(descriptor, SIOCGIFHWADDR, &request), 0);
  close(descriptor);
  std::string text;
  for (int byte = 0; byte < 6; ++byte) {
    absl::StrAppendFormat(
        &text, "%s%02x", byte == 0 ? "" : ":",
        static_cast<unsigned char>(request.ifr_hwaddr.sa_data[byte]));
  }
  return text;
}

TEST(TestbedTest, SysfsListsTheInterfacesOfTheHost) {
  std::string listed;
  std::ifstream("/sys/class/net/eth0/address") >> listed;
  EXPECT_EQ(listed, AddressOfEth0());
}

}  // namespace
}  // namespace hvdlite::collective
