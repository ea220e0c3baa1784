// The requirements for every Communicator concerning subgroups.
// communicator_conformance.h includes this.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "tests/testing/conformance/communicator_checks.h"
#include "tests/testing/conformance/communicator_suite.h"

namespace hvdlite::testing {

// Only the members call this. If the subgroup cannot be made, this reports a
// failure and returns null.
inline std::unique_ptr<Communicator> NewSubgroup(
    Communicator& communicator, const std::vector<int>& members, int tag = 0) {
  auto subgroup = communicator.CreateSubgroup(members, tag);
  EXPECT_TRUE(subgroup.ok()) << subgroup.status();
  if (!subgroup.ok()) return nullptr;
  const int index = static_cast<int>(
      std::find(members.begin(), members.end(), communicator.rank()) -
      members.begin());
  EXPECT_EQ((*subgroup)->rank(), index);
  EXPECT_EQ((*subgroup)->size(), static_cast<int>(members.size()));
  EXPECT_EQ((*subgroup)->name(), communicator.name());
  return *std::move(subgroup);
}

inline bool Contains(const std::vector<int>& members, int rank) {
  return std::find(members.begin(), members.end(), rank) != members.end();
}

TEST_P(CommunicatorConformance, EverySubsetOfRanksCanBeASubgroup) {
  Run([](Communicator& communicator) {
    const int size = std::min(communicator.size(), 4);
    for (int subset = 1; subset < 1 << size; ++subset) {
      std::vector<int> members;
      for (int rank = 0; rank < size; ++rank) {
        if ((subset >> rank & 1) != 0) members.push_back(rank);
      }
      if (!Contains(members, communicator.rank())) continue;
      const auto subgroup = NewSubgroup(communicator, members, /*tag=*/subset);
      ASSERT_NE(subgroup, nullptr);
      CheckRandomOperations(*subgroup, /*seed=*/subset, /*count=*/40);
    }
    CheckRandomOperations(communicator, /*seed=*/1, /*count=*/10);
  });
}

TEST_P(CommunicatorConformance, DisjointSubgroupsWorkAtTheSameTime) {
  Run([](Communicator& communicator) {
    std::vector<int> members;
    const int parity = communicator.rank() % 2;
    for (int rank = parity; rank < communicator.size(); rank += 2) {
      members.push_back(rank);
    }
    const auto subgroup = NewSubgroup(communicator, members, /*tag=*/parity);
    ASSERT_NE(subgroup, nullptr);
    // Kinds and numbers of their operations differ.
    CheckRandomOperations(*subgroup, /*seed=*/7 + parity,
                          /*count=*/100 + 200 * parity);
    CheckRandomOperations(communicator, /*seed=*/3, /*count=*/20);
  });
}

TEST_P(CommunicatorConformance, SubgroupsCountTheirRanksInAnyOrder) {
  Run([](Communicator& communicator) {
    std::vector<int> members;
    for (int rank = communicator.size() - 1; rank >= 0; --rank) {
      members.push_back(rank);
    }
    const auto subgroup = NewSubgroup(communicator, members);
    ASSERT_NE(subgroup, nullptr);
    CheckRandomOperations(*subgroup, /*seed=*/9, /*count=*/40);
    CheckRandomOperations(communicator, /*seed=*/4, /*count=*/10);
  });
}

TEST_P(CommunicatorConformance, OverlappingSubgroupsInARingAreIndependent) {
  Run([](Communicator& communicator) {
    if (communicator.size() < 3 || communicator.rank() > 2) return;
    const std::vector<int> ring[] = {{0, 1}, {1, 2}, {0, 2}};
    std::unique_ptr<Communicator> subgroups[3];
    for (int i = 0; i < 3; ++i) {
      if (!Contains(ring[i], communicator.rank())) continue;
      subgroups[i] = NewSubgroup(communicator, ring[i], /*tag=*/i);
      ASSERT_NE(subgroups[i], nullptr);
    }
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 3; ++i) {
        if (subgroups[i] == nullptr) continue;
        CheckRandomOperations(*subgroups[i], /*seed=*/10 * round + i,
                              /*count=*/5);
      }
    }
  });
}

TEST_P(CommunicatorConformance, SubgroupsHaveSubgroups) {
  Run([](Communicator& communicator) {
    // The members are all ranks but 0; then all of these but the first.
    std::vector<int> members;
    for (int rank = 1; rank < communicator.size(); ++rank) {
      members.push_back(rank);
    }
    if (communicator.rank() > 0) {
      const auto outer = NewSubgroup(communicator, members);
      ASSERT_NE(outer, nullptr);
      members.pop_back();
      if (outer->rank() > 0) {
        const auto inner = NewSubgroup(*outer, members);
        ASSERT_NE(inner, nullptr);
        CheckRandomOperations(*inner, /*seed=*/5, /*count=*/40);
      }
      CheckRandomOperations(*outer, /*seed=*/6, /*count=*/40);
    }
    CheckRandomOperations(communicator, /*seed=*/7, /*count=*/40);
  });
}

TEST_P(CommunicatorConformance, SubgroupsOfTheSameMembersAreIndependent) {
  Run([](Communicator& communicator) {
    std::vector<int> members;
    for (int rank = 0; rank < communicator.size(); ++rank) {
      members.push_back(rank);
    }
    const auto first = NewSubgroup(communicator, members, /*tag=*/0);
    const auto second = NewSubgroup(communicator, members, /*tag=*/32767);
    ASSERT_NE(first, nullptr);
    ASSERT_NE(second, nullptr);
    for (int i = 0; i < 20; ++i) {
      CheckRandomOperations(*first, /*seed=*/i, /*count=*/3);
      CheckRandomOperations(*second, /*seed=*/i, /*count=*/3);
      CheckRandomOperations(communicator, /*seed=*/i, /*count=*/1);
    }
  });
}

TEST_P(CommunicatorConformance, WrongSubgroupsFailAndTheWorldStaysUsable) {
  Run([](Communicator& communicator) {
    const int self = communicator.rank();
    const int size = communicator.size();
    const auto expect_invalid = [&](const std::vector<int>& members, int tag,
                                    const std::string& text) {
      ExpectInvalid(communicator.CreateSubgroup(members, tag).status(), text);
    };
    expect_invalid({}, 0, "but is not one of them");
    expect_invalid({self, size}, 0,
                   std::to_string(size) + " is not one of the ranks 0 to");
    expect_invalid({-1, self}, 0, "-1 is not one of the ranks 0 to");
    expect_invalid({self, self}, 0, std::to_string(self) + " appears twice");
    expect_invalid({self}, -1, "the tag is -1; it must be from 0 to 32767");
    expect_invalid({self}, 32768, "the tag is 32768");
    if (size > 1) {
      expect_invalid({1, 0, 1}, 0, "1 appears twice");
      expect_invalid(
          {self == 0 ? 1 : 0}, 0,
          "rank " + std::to_string(self) + " calls it, but is not one of them");
    }
    CheckRandomOperations(communicator, /*seed=*/2, /*count=*/10);
  });
}

}  // namespace hvdlite::testing
