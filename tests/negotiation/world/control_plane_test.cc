// The transports of control messages in worlds of several nodes, one rank per
// process. A single host is split into virtual nodes.
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "collective/mpi/mpi_communicator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/tree.h"
#include "negotiation/world/backend.h"
#include "tests/testing/conformance/control_channel_conformance.h"
#include "tests/testing/fakes/fake_communicator.h"

namespace hvdlite::internal {
namespace {

using collective::Communicator;
using collective::Topology;
using negotiation::ControlChannel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kArity = 2;

// The nodes of these processes: two ranks each if all are on one host.
Topology NodesOfTwo() {
  const auto session = collective::MpiSession::Start().value();
  const Topology& hosts = session->topology();
  return hosts.cross_size > 1 ? hosts
                              : collective::WithVirtualNodes(
                                    hosts, hosts.size % 2 == 0 ? "2" : "2,1")
                                    .value();
}

size_t NumThreads() {
  return static_cast<size_t>(std::distance(
      std::filesystem::directory_iterator("/proc/self/task"), {}));
}

Config By(const std::string& control_channel) {
  Config config;
  config.control_channel = control_channel;
  config.tree_arity = kArity;
  return config;
}

struct Made {
  std::unique_ptr<ControlChannel> channel;
  std::vector<std::string> warnings;
};

Made Make(const Config& config, const Topology& topology, Communicator& flat) {
  Made made;
  auto channel = ChooseControlChannel(config, topology, flat, made.warnings);
  EXPECT_TRUE(channel.ok()) << channel.status();
  made.channel = *std::move(channel);
  return made;
}

bool Uses(const Made& made, const char* transport) {
  return absl::StrContains(made.channel->name(), transport);
}

// Every rank exchanges messages with its neighbours in the tree. All ranks
// finish before any of them destroys its channel.
void TalkAndClose(Made made, Communicator& flat) {
  ControlChannel& channel = *made.channel;
  const negotiation::TreePosition place =
      negotiation::PlaceInTree(channel.rank(), kArity, *channel.layout());
  std::set<int> neighbours;
  if (place.parent >= 0) neighbours.insert(place.parent);
  for (const auto& child : place.children) neighbours.insert(child.rank);
  for (const int to : neighbours) {
    ASSERT_TRUE(channel.Send(to, absl::StrCat("for ", to)).ok());
  }
  std::set<int> heard;
  while (heard.size() < neighbours.size()) {
    const auto message = hvdlite::testing::Receive(channel);
    ASSERT_EQ(message.bytes, absl::StrCat("for ", channel.rank()));
    heard.insert(message.from);
  }
  EXPECT_EQ(heard, neighbours);
  ASSERT_TRUE(channel.Flush(absl::Seconds(60)).ok());
  ASSERT_TRUE(flat.Barrier().ok());
  made.channel.reset();
  ASSERT_TRUE(flat.Barrier().ok());
}

class ControlPlaneTest : public ::testing::Test {
 protected:
  bool leads() const { return topology_.local_rank == 0; }
  const Topology topology_ = NodesOfTwo();
  const std::unique_ptr<Communicator> flat_ =
      collective::CreateMpiCommunicator().value();
};

TEST_F(ControlPlaneTest, OneNodeAlwaysUsesSharedMemory) {
  Topology one = topology_;
  if (std::any_of(
          one.host_of_rank.begin(), one.host_of_rank.end(),
          [&](const auto& host) { return host != one.host_of_rank.front(); })) {
    GTEST_SKIP() << "there are several hosts";
  }
  one.cross_rank = 0;
  one.cross_size = 1;
  one.local_rank = one.rank;
  one.local_size = one.size;
  one.cross_rank_of_rank.assign(static_cast<size_t>(one.size), 0);
  for (const char* asked : {"auto", "ucx", "mpi"}) {
    Made made = Make(By(asked), one, *flat_);
    EXPECT_EQ(std::string(made.channel->name()), "SHM") << asked;
    EXPECT_THAT(made.warnings, IsEmpty());
    TalkAndClose(std::move(made), *flat_);
  }
}

TEST_F(ControlPlaneTest, OnlyLeadersOfNodesUseUcx) {
  const size_t threads_before = NumThreads();
  Made made = Make(By("ucx"), topology_, *flat_);
  EXPECT_EQ(made.channel->size(), topology_.size);
  EXPECT_EQ(Uses(made, "UCX"), leads()) << made.channel->name();
  if (!leads()) {
    EXPECT_EQ(NumThreads(), threads_before);
  }
  TalkAndClose(std::move(made), *flat_);
}

TEST_F(ControlPlaneTest, OnlyLeadersOfNodesPollMpi) {
  Made made = Make(By("mpi"), topology_, *flat_);
  EXPECT_EQ(Uses(made, "MPI"), leads()) << made.channel->name();
  EXPECT_THAT(made.channel->wake_descriptors(), SizeIs(leads() ? 0 : 2));
  EXPECT_THAT(made.warnings, IsEmpty());
  TalkAndClose(std::move(made), *flat_);
}

TEST_F(ControlPlaneTest, MpiReplacesUcxAfterAWarning) {
  setenv("HVDLITE_UCX_TLS", "no_such_transport", 1);
  Made made = Make(By("auto"), topology_, *flat_);
  std::vector<std::string> none;
  const auto refused = ChooseControlChannel(By("ucx"), topology_, *flat_, none);
  unsetenv("HVDLITE_UCX_TLS");
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("rank 0"));
  EXPECT_THAT(made.warnings, ElementsAre(HasSubstr("MPI")));
  EXPECT_EQ(Uses(made, "MPI"), leads()) << made.channel->name();
  TalkAndClose(std::move(made), *flat_);
}

// A communicator whose ranks cannot share memory on their node.
class ApartCommunicator final
    : public hvdlite::testing::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  absl::StatusOr<std::unique_ptr<Communicator>> CreateSubgroup(
      absl::Span<const int>, int) override {
    return absl::UnavailableError("no memory to share");
  }
};

TEST_F(ControlPlaneTest, EveryRankIsANodeIfMemoryCannotBeShared) {
  ApartCommunicator apart(collective::CreateMpiCommunicator().value());
  Made made = Make(By("auto"), topology_, apart);
  EXPECT_EQ(std::string(made.channel->name()), "UCX");
  EXPECT_THAT(made.channel->layout()->leaders(), SizeIs(topology_.size));
  EXPECT_THAT(made.warnings, ElementsAre(HasSubstr("no memory to share")));
  TalkAndClose(std::move(made), apart);
}

}  // namespace
}  // namespace hvdlite::internal
