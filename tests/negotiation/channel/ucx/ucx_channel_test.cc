// Channels over UCX whose ranks are threads of this process.
#include "negotiation/channel/ucx/ucx_channel.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/channel/ucx/ucx_link.h"
#include "negotiation/channel/ucx/ucx_worker.h"
#include "tests/testing/conformance/control_channel_conformance.h"
#include "tests/testing/fakes/fake_communicator.h"
#include "tests/testing/in_process/in_process.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::ControlChannelCheck;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

// The tests must not depend on variables of the user who runs them.
UcxChannelOptions Options() {
  UcxChannelOptions options;
  options.environment = base::FakeEnvironment({});
  return options;
}

// Options in which every rank is a neighbour of every other one.
UcxChannelOptions AmongAll(const collective::Communicator& world) {
  UcxChannelOptions options = Options();
  for (int rank = 0; rank < world.size(); ++rank) {
    if (rank != world.rank()) options.neighbours.push_back(rank);
  }
  return options;
}

class UcxChannelConformanceTest
    : public ::testing::TestWithParam<std::tuple<int, ControlChannelCheck>> {};

TEST_P(UcxChannelConformanceTest, Conforms) {
  const auto& [size, check] = GetParam();
  hvdlite::testing::RunInProcessRanks(
      size, [&check = check](collective::Communicator& world) {
        const auto barrier = [&] { ASSERT_TRUE(world.Barrier().ok()); };
        auto channel = CreateUcxChannel(world, AmongAll(world));
        ASSERT_TRUE(channel.ok()) << channel.status();
        EXPECT_EQ((*channel)->rank(), world.rank());
        EXPECT_EQ((*channel)->size(), world.size());
        check.run(**channel, barrier);
        barrier();
      });
}

INSTANTIATE_TEST_SUITE_P(
    All, UcxChannelConformanceTest,
    ::testing::Combine(
        ::testing::Range(2, 9),
        ::testing::ValuesIn(hvdlite::testing::kControlChannelChecks)),
    [](const auto& info) {
      return absl::StrCat(std::get<1>(info.param).name, "_",
                          std::get<0>(info.param));
    });

// Remembers who exchanged what, and how much was gathered.
class ListeningCommunicator final
    : public hvdlite::testing::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;

  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    gathered_bytes.insert(gathered_bytes.end(), bytes_of_rank.begin(),
                          bytes_of_rank.end());
    return base().Allgather(buffer, bytes_of_rank);
  }
  absl::Status Exchange(int peer, absl::Span<const std::byte> send,
                        absl::Span<std::byte> receive) override {
    absl::Status status = base().Exchange(peer, send, receive);
    peers.push_back(peer);
    heard.assign(reinterpret_cast<const char*>(receive.data()), receive.size());
    return status;
  }

  std::vector<size_t> gathered_bytes;
  std::vector<int> peers;
  std::string heard;  // received in the last exchange
};

void OnListeningRanks(int size,
                      const std::function<void(ListeningCommunicator&)>& body) {
  std::vector<std::unique_ptr<ListeningCommunicator>> world;
  for (auto& rank : collective::CreateInProcessWorld(size)) {
    world.push_back(std::make_unique<ListeningCommunicator>(std::move(rank)));
  }
  hvdlite::testing::RunRanks(
      size, [&](int rank) { body(*world[static_cast<size_t>(rank)]); });
}

TEST(UcxChannelTest, OnlyNeighboursExchangeAddresses) {
  // The tree is 3 - 1 - 0 - 2, and 4 is alone.
  const std::vector<std::vector<int>> neighbours = {
      {2, 1}, {0, 3}, {0}, {1}, {}};
  OnListeningRanks(5, [&](ListeningCommunicator& world) {
    const int rank = world.rank();
    UcxChannelOptions options = Options();
    options.neighbours = neighbours[static_cast<size_t>(rank)];
    auto channel = CreateUcxChannel(world, options);
    ASSERT_TRUE(channel.ok()) << channel.status();
    EXPECT_EQ(*channel == nullptr, rank == 4);
    std::vector<int> met;
    for (const int peer : world.peers) {
      if (met.empty() || met.back() != peer) met.push_back(peer);
    }
    std::vector<int> expected = options.neighbours;
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(met, expected);
    // All ranks gather only whether all is well.
    EXPECT_THAT(world.gathered_bytes, Each(Le(16)));
    for (const int to : options.neighbours) {
      ASSERT_TRUE((*channel)->Send(to, absl::StrCat(rank, " to ", to)).ok());
    }
    for (size_t i = 0; i < options.neighbours.size(); ++i) {
      const ControlMessage message = hvdlite::testing::Receive(**channel);
      EXPECT_EQ(message.bytes, absl::StrCat(message.from, " to ", rank));
    }
    if (rank == 3) {
      EXPECT_TRUE(absl::IsInvalidArgument((*channel)->Send(0, "far")));
    }
    ASSERT_TRUE(world.Barrier().ok());
  });
}

// A worker that belongs to no rank and sends to one.
class Stranger {
 public:
  Stranger(const std::string& address, const MessageHeader& header)
      : worker_(UcxWorker::Create("^sm", base::FakeEnvironment({})).value()),
        link_(*worker_, traffic_, header, "rank 0", address) {
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    EXPECT_EQ(ucp_ep_create(worker_->handle(), &params, &endpoint_), UCS_OK);
  }
  ~Stranger() {
    link_.StartClose();
    EXPECT_TRUE(Finish([this] { return traffic_.closing == 0; }));
    ucp_request_param_t params = {};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = UCP_EP_CLOSE_FLAG_FORCE;
    Wait(ucp_ep_close_nbx(endpoint_, &params));
  }

  void Send(std::string bytes) {
    ASSERT_TRUE(link_.Send(std::move(bytes)).ok());
    ASSERT_TRUE(Finish([this] { return traffic_.sending.empty(); }));
  }

  void SendWithHeader(const std::string& header) {
    const ucp_request_param_t plain = {};
    Wait(ucp_am_send_nbx(endpoint_, kMessageId, header.data(), header.size(),
                         nullptr, 0, &plain));
  }

 private:
  bool Finish(absl::FunctionRef<bool()> done) {
    return worker_->ProgressUntil(done, absl::Seconds(60)).ok();
  }
  void Wait(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) return;
    EXPECT_TRUE(Finish(
        [&] { return ucp_request_check_status(request) != UCS_INPROGRESS; }));
    ucp_request_free(request);
  }

  const std::unique_ptr<UcxWorker> worker_;
  UcxTraffic traffic_;
  UcxLink link_;  // sends complete headers
  ucp_ep_h endpoint_ = nullptr;
};

// Rank 1 lets a stranger send to rank 0. Rank 0 drops the message for a reason
// that contains `why`, and continues.
void ExpectDropped(const std::string& why, const MessageHeader& header,
                   const std::function<void(Stranger&)>& send) {
  OnListeningRanks(2, [&](ListeningCommunicator& world) {
    auto channel = CreateUcxChannel(world, AmongAll(world));
    ASSERT_TRUE(channel.ok()) << channel.status();
    if (world.rank() == 1) {
      Stranger stranger(world.heard, header);
      send(stranger);
      ASSERT_TRUE(world.Barrier().ok());
    } else {
      std::vector<std::string> warnings;
      while (warnings.empty()) {
        const auto received = (*channel)->TryReceive();
        ASSERT_TRUE(received.ok()) << received.status();
        ASSERT_FALSE(received->has_value()) << (*received)->bytes;
        warnings = (*channel)->TakeWarnings();
      }
      EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr("not of this job"),
                                              HasSubstr(why))));
      ASSERT_TRUE(world.Barrier().ok());
    }
    hvdlite::testing::CheckMessagesArriveInOrder(**channel);
    EXPECT_THAT((*channel)->TakeWarnings(), IsEmpty());
    ASSERT_TRUE(world.Barrier().ok());
  });
}

TEST(UcxChannelTest, MessagesOfAnotherJobAreDroppedAndWarnedOfOnce) {
  ExpectDropped("the number of another job", {.nonce = 7, .from = 1},
                [](Stranger& stranger) {
                  stranger.Send("small");
                  stranger.Send(std::string(300'000, 'x'));
                });
}

TEST(UcxChannelTest, MessagesOfAnotherVersionAreDropped) {
  ExpectDropped("version 9", {.nonce = 7, .version = 9, .from = 1},
                [](Stranger& stranger) { stranger.Send("small"); });
}

TEST(UcxChannelTest, MessagesWithoutACompleteHeaderAreDropped) {
  ExpectDropped("a header of 4 bytes", {}, [](Stranger& stranger) {
    stranger.SendWithHeader("head");
    stranger.SendWithHeader("more");
  });
}

TEST(UcxChannelTest, FailureOfOneRankIsTheSameErrorOnAll) {
  const std::vector<std::string> hosts = {"red", "green", "blue"};
  hvdlite::testing::RunInProcessRanks(3, [&](collective::Communicator& world) {
    UcxChannelOptions options = AmongAll(world);
    options.host_of_rank = hosts;
    if (world.rank() == 1) options.transports = "no_such_transport";
    const auto channel = CreateUcxChannel(world, options);
    EXPECT_TRUE(absl::IsUnavailable(channel.status()));
    EXPECT_THAT(std::string(channel.status().message()),
                AllOf(HasSubstr("rank 1 (green): UCX: "), HasSubstr("ucp_")));
    // All ranks can make another channel.
    EXPECT_TRUE(world.Barrier().ok());
  });
}

TEST(UcxChannelTest, UnreachableNeighboursAreDetectedAtTheStart) {
  hvdlite::testing::RunInProcessRanks(3, [](collective::Communicator& world) {
    UcxChannelOptions options = AmongAll(world);
    // Its loopback transport reaches no other rank.
    if (world.rank() == 2) options.transports = "self";
    const auto channel = CreateUcxChannel(world, options);
    EXPECT_TRUE(absl::IsUnavailable(channel.status())) << channel.status();
    EXPECT_THAT(std::string(channel.status().message()), HasSubstr("rank 2"));
    EXPECT_TRUE(world.Barrier().ok());
  });
}

TEST(UcxChannelTest, UsersChoiceOfTransportsWins) {
  for (const char* name : {"UCX_TLS", "HVDLITE_UCX_TLS"}) {
    hvdlite::testing::RunInProcessRanks(
        2, [&](collective::Communicator& world) {
          UcxChannelOptions options = AmongAll(world);
          // UCX itself sees no such variable here, and uses its own default.
          options.environment = base::FakeEnvironment({{name, "all"}});
          options.transports = "no_such_transport";
          EXPECT_TRUE(CreateUcxChannel(world, options).ok()) << name;
          EXPECT_TRUE(world.Barrier().ok());
        });
  }
}

TEST(UcxChannelTest, FlushTimesOutIfNoRankReceives) {
  hvdlite::testing::RunInProcessRanks(2, [](collective::Communicator& world) {
    auto channel = CreateUcxChannel(world, AmongAll(world)).value();
    if (world.rank() == 0) {
      ASSERT_TRUE(channel->Send(1, std::string(10'000'000, 'x')).ok());
      EXPECT_TRUE(
          absl::IsDeadlineExceeded(channel->Flush(absl::Milliseconds(1))));
      ASSERT_TRUE(world.Barrier().ok());
      EXPECT_TRUE(channel->Flush(absl::Seconds(60)).ok());
    } else {
      ASSERT_TRUE(world.Barrier().ok());
      EXPECT_EQ(hvdlite::testing::Receive(*channel).bytes.size(), 10'000'000);
    }
    ASSERT_TRUE(world.Barrier().ok());
  });
}

}  // namespace
}  // namespace hvdlite::negotiation
