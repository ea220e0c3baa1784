#include "tools/doctor/checks/mpi_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/finding_matchers.h"
#include "tools/doctor/checks/ucx_check.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;

const MpiFacts kOpenMpi = {.library = "Open MPI v4.1.4",
                           .thread_level = "MPI_THREAD_MULTIPLE"};

TEST(MpiTest, TellsLibraryAndThreadLevel) {
  EXPECT_THAT(
      JudgeMpi(kOpenMpi, 2, absl::OkStatus(), absl::OkStatus()),
      ElementsAre(IsOk("Open MPI v4.1.4, up to MPI_THREAD_MULTIPLE, 2 ranks")));
  EXPECT_THAT(JudgeMpi(std::nullopt, 1, absl::OkStatus(), absl::OkStatus()),
              ElementsAre(HasVerdict(Verdict::kNote)));
}

TEST(MpiTest, WhatKeepsInitFromWorkingIsAProblem) {
  EXPECT_THAT(JudgeMpi(MpiFacts{.library = "X MPI",
                                .thread_level = "MPI_THREAD_SINGLE",
                                .error = "it offers MPI_THREAD_SINGLE"},
                       1, absl::OkStatus(), absl::OkStatus()),
              ElementsAre(Says(Verdict::kProblem, "MPI_THREAD_SINGLE",
                               "thread support")));
  EXPECT_THAT(
      JudgeMpi(kOpenMpi, 1, absl::FailedPreconditionError("started 4"),
               absl::OkStatus()),
      ElementsAre(HasVerdict(Verdict::kOk),
                  Says(Verdict::kProblem, "started 4", "mpirun of that MPI")));
  EXPECT_THAT(JudgeMpi(kOpenMpi, 2, absl::OkStatus(),
                       absl::InvalidArgumentError("configurations differ")),
              ElementsAre(HasVerdict(Verdict::kOk),
                          Says(Verdict::kProblem, "differ", "mpirun -x")));
}

TEST(TransportsTest, ReadsThemFromTheComponentsThatStayLoaded) {
  const TransportFacts facts = TransportsIn({{"mca_pml_ob1.so", "/m"},
                                             {"mca_btl_vader.so", "/m"},
                                             {"mca_btl_tcp.so", "/m"},
                                             {"mca_coll_tuned.so", "/m"},
                                             {"libmpi.so.40", "/l"}});
  EXPECT_THAT(facts.pml, ElementsAre("ob1"));
  EXPECT_THAT(facts.btl, ElementsAre("vader", "tcp"));
  EXPECT_TRUE(facts.mtl.empty());
}

TEST(TransportsTest, TcpBesideAFastNetworkIsAProblem) {
  TransportFacts facts = {.mpi_library = "Open MPI v4.1.4",
                          .pml = {"ob1"},
                          .btl = {"vader", "tcp"},
                          .mtl = {},
                          .hosts = 2,
                          .fast_devices = {"mlx5_0:1"}};
  EXPECT_THAT(JudgeTransports(facts),
              Says(Verdict::kProblem, "mlx5_0:1", "--mca pml ucx"));
  facts.hosts = 1;
  EXPECT_THAT(JudgeTransports(facts),
              IsOk("by ob1 (pml), over vader, tcp (btl)"));
  facts.hosts = 2;
  facts.fast_devices.clear();
  EXPECT_THAT(JudgeTransports(facts), HasVerdict(Verdict::kOk));
  facts.fast_devices = {"mlx5_0:1"};
  facts.pml = {"ucx"};
  EXPECT_THAT(JudgeTransports(facts), IsOk("by ucx (pml), over the devices"));
  facts.pml.clear();
  EXPECT_THAT(JudgeTransports(facts), HasVerdict(Verdict::kNote));
}

TEST(UcxTest, ListsDevicesWithTheirTransports) {
  const UcxDevice ethernet = {.transport = "tcp", .device = "eth0"};
  const UcxDevice reliable = {
      .transport = "rc_mlx5", .device = "mlx5_0:1", .fast = true};
  const UcxDevice dynamic = {
      .transport = "dc_mlx5", .device = "mlx5_0:1", .fast = true};
  EXPECT_THAT(JudgeUcx(std::vector<UcxDevice>{reliable, ethernet, dynamic}, 2),
              IsOk("UCX finds eth0 (tcp), mlx5_0:1 (rc_mlx5, dc_mlx5)"));
  EXPECT_THAT(JudgeUcx(std::vector<UcxDevice>{ethernet}, 2),
              IsOk("UCX finds eth0 (tcp): no network faster than Ethernet"));
}

TEST(UcxTest, ItsAbsenceMattersBetweenHosts) {
  EXPECT_THAT(JudgeUcx(std::nullopt, 2),
              Says(Verdict::kWarning, "without UCX", "libucx-dev"));
  EXPECT_THAT(JudgeUcx(std::nullopt, 1), HasVerdict(Verdict::kNote));
  EXPECT_THAT(JudgeUcx(std::vector<UcxDevice>(), 2),
              Says(Verdict::kWarning, "no network device", "ucx_info"));
}

}  // namespace
}  // namespace hvdlite::doctor
