#include "negotiation/explain/start_summary.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/config/config_loader.h"
#include "base/status_macros.h"
#include "negotiation/protocol/rank_list.h"

namespace hvdlite::internal {
namespace {

constexpr size_t kMaxParts = 4;  // hosts or nodes that are listed

// ProcessFacts as sent between ranks.
struct Record {
  char versions[252];
  int32_t cpus;
  int32_t threads;
  int32_t coordinator_has_core;
};

std::string Count(int number, absl::string_view what) {
  return absl::StrCat(number, " ", what, number == 1 ? "" : "s");
}

// For example "n01, n02, n03, n04, 12 more".
std::string ListFirst(std::vector<std::string> parts) {
  if (parts.size() > kMaxParts) {
    const size_t left_out = parts.size() - kMaxParts;
    parts.resize(kMaxParts);
    parts.push_back(absl::StrCat(left_out, " more"));
  }
  return absl::StrJoin(parts, ", ");
}

// For example ", split into 3 virtual nodes (ranks 0-1, rank 2, rank 3)"; empty
// if hosts are nodes.
std::string DescribeVirtualNodes(const StartFacts& facts) {
  const collective::Topology& topology = facts.topology;
  if (facts.config.virtual_nodes.empty() || topology.size == 1) return "";
  std::vector<std::vector<int>> ranks(static_cast<size_t>(topology.cross_size));
  for (int rank = 0; rank < topology.size; ++rank) {
    const int node = topology.cross_rank_of_rank[static_cast<size_t>(rank)];
    ranks[static_cast<size_t>(node)].push_back(rank);
  }
  std::vector<std::string> parts;
  for (const std::vector<int>& of_node : ranks) {
    parts.push_back(negotiation::FormatRanks(of_node));
  }
  return absl::StrCat(", split into ",
                      Count(topology.cross_size, "virtual node"), " (",
                      ListFirst(std::move(parts)), ")");
}

// For example "2 hosts (n01: ranks 0-1, n02: ranks 2-3)".
std::string DescribeHosts(const collective::Topology& topology) {
  std::vector<std::string> names;  // in the order of their lowest ranks
  std::map<std::string, std::vector<int>> ranks;
  for (size_t rank = 0; rank < topology.host_of_rank.size(); ++rank) {
    const std::string& host = topology.host_of_rank[rank];
    if (ranks[host].empty()) names.push_back(host);
    ranks[host].push_back(static_cast<int>(rank));
  }
  if (names.size() == 1) return absl::StrCat("1 host (", names.front(), ")");
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    parts.push_back(
        absl::StrCat(name, ": ", negotiation::FormatRanks(ranks[name])));
  }
  return absl::StrCat(names.size(), " hosts (", ListFirst(std::move(parts)),
                      ")");
}

absl::string_view DescribeCoordinator(const ProcessFacts& facts) {
  return facts.coordinator_has_core
             ? "one CPU reserved for the background thread"
             : "no CPU reserved for the background thread";
}

// Returns how `other` differs from `usual`; empty if it does not.
std::string Difference(const ProcessFacts& usual, const ProcessFacts& other) {
  std::vector<std::string> parts;
  const std::vector<std::string> known = absl::StrSplit(usual.versions, ", ");
  std::vector<std::string> versions =
      absl::StrSplit(other.versions, ", ", absl::SkipEmpty());
  std::erase_if(versions, [&](const std::string& version) {
    return absl::c_linear_search(known, version);
  });
  if (!versions.empty()) parts.push_back(absl::StrJoin(versions, ", "));
  if (other.cpus != usual.cpus) parts.push_back(Count(other.cpus, "CPU"));
  if (other.threads != usual.threads) {
    parts.push_back(Count(other.threads, "thread"));
  }
  if (other.coordinator_has_core != usual.coordinator_has_core) {
    parts.emplace_back(DescribeCoordinator(other));
  }
  return absl::StrJoin(parts, "; ");
}

// For example "chunk_bytes=65536 (HVDLITE_CHUNK_BYTES)"; empty if all are
// defaults.
std::string ChangedSettings(const Config& config) {
  std::vector<std::string> changed;
  for (const ConfigValue& value : ConfigValues(config)) {
    if (value.source == "default") continue;
    changed.push_back(
        absl::StrCat(value.name, "=", value.text, " (", value.source, ")"));
  }
  return absl::StrJoin(changed, ", ");
}

}  // namespace

std::string VersionsOf(absl::string_view build_info) {
  std::vector<std::string> parts;
  for (const absl::string_view line :
       absl::StrSplit(build_info, '\n', absl::SkipEmpty())) {
    parts.push_back(
        absl::StrReplaceAll(line.substr(0, line.find(',')), {{": ", " "}}));
  }
  return absl::StrJoin(parts, ", ");
}

absl::StatusOr<std::vector<ProcessFacts>> ExchangeFacts(
    collective::Communicator& communicator, const ProcessFacts& own,
    bool wanted) {
  if (communicator.size() == 1) {
    return wanted ? std::vector<ProcessFacts>{own}
                  : std::vector<ProcessFacts>{};
  }
  std::byte asked{static_cast<unsigned char>(wanted)};
  HVDLITE_RETURN_IF_ERROR(
      communicator.Broadcast(absl::MakeSpan(&asked, 1), /*root=*/0));
  std::vector<ProcessFacts> facts;
  if (asked == std::byte{0}) return facts;
  const auto size = static_cast<size_t>(communicator.size());
  std::vector<Record> records(size, Record());
  Record& mine = records[static_cast<size_t>(communicator.rank())];
  std::memcpy(mine.versions, own.versions.data(),
              std::min(own.versions.size(), sizeof(mine.versions) - 1));
  mine.cpus = own.cpus;
  mine.threads = own.threads;
  mine.coordinator_has_core = own.coordinator_has_core ? 1 : 0;
  HVDLITE_RETURN_IF_ERROR(communicator.Allgather(
      {reinterpret_cast<std::byte*>(records.data()), size * sizeof(Record)},
      std::vector<size_t>(size, sizeof(Record))));
  for (const Record& record : records) {
    facts.push_back({.versions = record.versions,
                     .cpus = record.cpus,
                     .threads = record.threads,
                     .coordinator_has_core = record.coordinator_has_core != 0});
  }
  return facts;
}

std::string DescribeThreadsThatWait(int threads, int cpus, int ranks) {
  if (cpus <= 0 || threads <= 1 || ranks * threads <= cpus) return "";
  return absl::StrCat(
      ranks > 1 ? Count(ranks, "rank") + " of this host compute"
                : "a rank of this host computes",
      " with ", Count(threads, "thread"), ranks > 1 ? " each" : "", " on ",
      Count(cpus, "CPU"),
      ", so that threads wait for each other and spin: export OMP_NUM_THREADS=",
      std::max(1, cpus / ranks),
      ", as hvdliterun does, or give the ranks more CPUs");
}

std::string SummariseStart(const StartFacts& facts) {
  const collective::Topology& topology = facts.topology;
  const ProcessFacts& usual = facts.of_rank.front();
  std::string text =
      absl::StrCat(Count(topology.size, "rank"), " on ",
                   DescribeHosts(topology), DescribeVirtualNodes(facts));
  if (topology.size > 1) {
    absl::StrAppend(&text, "; tensors by ", facts.tensors_by,
                    ", control messages by ", facts.control_by);
  }
  if (!usual.versions.empty()) absl::StrAppend(&text, "\n  ", usual.versions);
  absl::StrAppend(&text, "\n  ", topology.size > 1 ? "each rank: " : "",
                  Count(usual.cpus, "CPU"), " (",
                  topology.size > 1 ? "rank 0: " : "", facts.cpu_list, "), ",
                  Count(usual.threads, "thread"), ", ",
                  DescribeCoordinator(usual));
  const std::string changed = ChangedSettings(facts.config);
  if (!changed.empty()) absl::StrAppend(&text, "\n  settings: ", changed);
  std::map<std::string, std::vector<int>> ranks_that_differ;
  for (size_t rank = 1; rank < facts.of_rank.size(); ++rank) {
    const std::string difference = Difference(usual, facts.of_rank[rank]);
    if (difference.empty()) continue;
    ranks_that_differ[difference].push_back(static_cast<int>(rank));
  }
  for (const auto& [difference, ranks] : ranks_that_differ) {
    absl::StrAppend(&text, "\n  ", negotiation::FormatRanks(ranks),
                    ranks.size() == 1 ? " differs: " : " differ: ", difference);
  }
  return text;
}

}  // namespace hvdlite::internal
