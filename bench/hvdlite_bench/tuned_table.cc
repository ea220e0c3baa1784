#include "bench/hvdlite_bench/tuned_table.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "bench/hvdlite_bench/results.h"
#include "support/machine.h"
#include "support/statistics.h"
#include "support/text_table.h"

namespace hvdlite::tools {
namespace {

using collective::AllreduceAlgorithm;
using collective::AllreduceChoice;
using collective::AllreduceTable;

constexpr int64_t kKiB = 1024;
constexpr int64_t kAnySize = std::numeric_limits<int64_t>::max();
// The limit for one-shot, in which every rank reads all data of all others.
constexpr int64_t kMostAtOnceBytes = 256 * kKiB;
// Below this size, a result stays in the cache.
constexpr int64_t kStreamingBytes = 1024 * kKiB;
// The ratio of times below which the choice changes.
constexpr double kClearlyFaster = 0.95;

std::string BytesText(int64_t bytes) {
  const char* unit = "";
  for (const char* larger : {"K", "M", "G"}) {
    if (bytes == 0 || bytes % kKiB != 0) break;
    bytes /= kKiB;
    unit = larger;
  }
  return absl::StrCat(bytes, unit);
}

Candidate InChunks(AllreduceAlgorithm algorithm, int64_t chunk_bytes,
                   int64_t above_bytes, bool streaming = false) {
  return {{algorithm, static_cast<size_t>(chunk_bytes), streaming},
          streaming ? kStreamingBytes : above_bytes,
          kAnySize};
}

// False if one of them was not measured.
bool IsClearlyFaster(const std::vector<double>& times,
                     const std::vector<double>& than) {
  if (times.empty() || than.empty()) return false;
  std::vector<double> ratios;
  for (size_t round = 0; round < times.size(); ++round) {
    ratios.push_back(times[round] / than[round]);
  }
  const MedianRatio ratio = MedianOf(ratios);
  return ratio.median <= kClearlyFaster && ratio.interval.high < 1;
}

size_t FastestOf(const MeasuredSize& size, const std::vector<size_t>& among) {
  return *std::min_element(among.begin(), among.end(), [&](size_t a, size_t b) {
    return support::Median(size.times[a]) < support::Median(size.times[b]);
  });
}

// The kind of a line in a table: a row for exactly this world, or another one.
enum class LineKind { kComment, kRowOfWorld, kOtherRow };

LineKind KindOf(absl::string_view line, const TableWorld& world) {
  const std::vector<std::string> words =
      absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t\r"),
                     absl::SkipEmpty());
  if (words.empty()) return LineKind::kComment;
  return words[0] == absl::StrCat(world.nodes) &&
                 words[1] == absl::StrCat(world.ranks_per_node)
             ? LineKind::kRowOfWorld
             : LineKind::kOtherRow;
}

// A paragraph of a table without the rows for `world`; empty if it has no other
// rows.
struct Paragraph {
  std::string text;
  bool had_rows = false;
};

Paragraph WithoutWorld(absl::string_view text, const TableWorld& world) {
  Paragraph paragraph;
  bool has_rows = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const LineKind kind = KindOf(line, world);
    paragraph.had_rows = paragraph.had_rows || kind != LineKind::kComment;
    has_rows = has_rows || kind == LineKind::kOtherRow;
    if (kind != LineKind::kRowOfWorld) {
      absl::StrAppend(&paragraph.text, line, "\n");
    }
  }
  if (paragraph.had_rows && !has_rows) paragraph.text.clear();
  return paragraph;
}

std::vector<std::string> ParagraphsOf(absl::string_view table) {
  std::vector<std::string> paragraphs;
  std::vector<absl::string_view> lines;
  const auto end = [&] {
    if (!lines.empty()) paragraphs.push_back(absl::StrJoin(lines, "\n"));
    lines.clear();
  };
  for (const absl::string_view line : absl::StrSplit(table, '\n')) {
    if (absl::StripAsciiWhitespace(line).empty()) {
      end();
    } else {
      lines.push_back(line);
    }
  }
  end();
  return paragraphs;
}

}  // namespace

TableWorld WorldOf(const std::vector<int>& node_of_rank) {
  std::map<int, int> ranks_of_node;
  for (const int node : node_of_rank) ++ranks_of_node[node];
  const auto fewer = [](const auto& a, const auto& b) {
    return a.second < b.second;
  };
  const auto [smallest, largest] =
      std::minmax_element(ranks_of_node.begin(), ranks_of_node.end(), fewer);
  if (largest->second < 2) {
    throw std::invalid_argument(absl::StrCat(
        "no host has two of the ", node_of_rank.size(),
        " ranks, so that MPI reduces everything and there is nothing to "
        "choose: start two ranks per host or more"));
  }
  // The data plane counts a node with one rank as one with two.
  return {static_cast<int>(ranks_of_node.size()),
          std::max(2, smallest->second)};
}

std::string Candidate::name() const {
  std::string text(collective::NameOf(choice.algorithm));
  if (choice.algorithm == AllreduceAlgorithm::kTwoShot ||
      choice.algorithm == AllreduceAlgorithm::kHierarchical) {
    absl::StrAppend(&text, "_",
                    BytesText(static_cast<int64_t>(choice.chunk_bytes)));
  }
  return choice.streaming ? text + "_streaming" : text;
}

std::vector<Candidate> CandidatesFor(const TableWorld& world) {
  // A chunk that holds the whole bucket is equivalent to any larger chunk.
  if (world.nodes > 1) {
    const AllreduceAlgorithm hierarchical = AllreduceAlgorithm::kHierarchical;
    return {InChunks(hierarchical, 2048 * kKiB, 0),
            InChunks(hierarchical, 512 * kKiB, 512 * kKiB + 1),
            InChunks(hierarchical, 2048 * kKiB, 0, /*streaming=*/true),
            InChunks(AllreduceAlgorithm::kFlat, 0, 0)};
  }
  const AllreduceAlgorithm two_shot = AllreduceAlgorithm::kTwoShot;
  return {InChunks(two_shot, 512 * kKiB, 0),
          InChunks(two_shot, 128 * kKiB, 128 * kKiB + 1),
          InChunks(two_shot, 2048 * kKiB, 512 * kKiB + 1),
          InChunks(two_shot, 512 * kKiB, 0, /*streaming=*/true),
          {{AllreduceAlgorithm::kOneShot, kMostAtOnceBytes, false},
           0,
           kMostAtOnceBytes}};
}

int FindCandidate(const std::vector<Candidate>& candidates,
                  const AllreduceChoice& choice, int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const AllreduceChoice& other = candidates[i].choice;
    if (!candidates[i].Fits(bytes) || other.algorithm != choice.algorithm) {
      continue;
    }
    const bool alike =
        choice.algorithm == AllreduceAlgorithm::kFlat ||
        other.chunk_bytes == choice.chunk_bytes ||
        (other.chunk_bytes >= size && choice.chunk_bytes >= size);
    if (alike && other.streaming == choice.streaming)
      return static_cast<int>(i);
  }
  return -1;
}

std::vector<size_t> ChooseByTimes(const std::vector<MeasuredSize>& sizes) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const MeasuredSize& size = sizes[i];
    std::vector<size_t> faster;
    const bool keeps = i > 0 && !size.times[chosen.back()].empty();
    for (size_t other = 0; other < size.times.size(); ++other) {
      if (size.times[other].empty()) continue;
      if (!keeps) {
        faster.push_back(other);
        continue;
      }
      if (i + 1 == sizes.size()) break;
      const std::vector<double>& kept = sizes[i + 1].times[chosen.back()];
      const std::vector<double>& next = sizes[i + 1].times[other];
      if (IsClearlyFaster(size.times[other], size.times[chosen.back()]) &&
          (kept.empty() ? !next.empty() : IsClearlyFaster(next, kept))) {
        faster.push_back(other);
      }
    }
    chosen.push_back(faster.empty() ? chosen.back() : FastestOf(size, faster));
  }
  return chosen;
}

std::string TableRow(const TableWorld& world, const Candidate& candidate,
                     int64_t up_to_bytes) {
  const AllreduceChoice& choice = candidate.choice;
  auto chunk = static_cast<int64_t>(choice.chunk_bytes);
  if (choice.algorithm == AllreduceAlgorithm::kOneShot) {
    chunk = (up_to_bytes + 63) / 64 * 64;
  }
  return absl::StrFormat(
      "%-7d  %-14d  %-11s  %-12s  %-11s  %s\n", world.nodes,
      world.ranks_per_node,
      up_to_bytes == kAnySize ? "inf" : BytesText(up_to_bytes),
      collective::NameOf(choice.algorithm), BytesText(chunk),
      choice.streaming ? "streaming" : "cached");
}

std::string TableSection(const TableWorld& world,
                         const std::vector<Candidate>& candidates,
                         const std::vector<MeasuredSize>& sizes,
                         const std::vector<size_t>& chosen,
                         absl::string_view header) {
  std::string section;
  for (const absl::string_view line : absl::StrSplit(header, '\n')) {
    absl::StrAppend(&section, "# ", line, "\n");
  }
  section +=
      "# nodes  ranks per node  up to bytes  algorithm     chunk bytes  "
      "stores\n";
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Candidate& candidate = candidates[chosen[i]];
    if (i + 1 < sizes.size() && chosen[i + 1] == chosen[i]) continue;
    if (i + 1 < sizes.size()) {
      section += TableRow(world, candidate, sizes[i].bytes);
    } else if (candidate.max_bytes == kAnySize) {
      section += TableRow(world, candidate, kAnySize);
    } else {
      section += TableRow(world, candidate, sizes[i].bytes);
      section += TableRow(world, candidates[0], kAnySize);
    }
  }
  return section;
}

absl::StatusOr<std::string> WithSection(absl::string_view table,
                                        const TableWorld& world,
                                        absl::string_view section) {
  HVDLITE_RETURN_IF_ERROR(AllreduceTable::Parse(table).status());
  // Paragraphs before the first row describe the file.
  std::vector<std::string> head;
  std::vector<std::string> rest;
  bool in_head = true;
  for (const std::string& text : ParagraphsOf(table)) {
    const Paragraph paragraph = WithoutWorld(text, world);
    in_head = in_head && !paragraph.had_rows;
    if (!paragraph.text.empty()) {
      (in_head ? head : rest).push_back(paragraph.text);
    }
  }
  head.emplace_back(section);
  head.insert(head.end(), rest.begin(), rest.end());
  std::string result = absl::StrJoin(head, "\n");
  HVDLITE_RETURN_IF_ERROR(AllreduceTable::Parse(result).status());
  return result;
}

bool HasSection(absl::string_view table, const TableWorld& world) {
  return absl::c_any_of(absl::StrSplit(table, '\n'),
                        [&](absl::string_view line) {
                          return KindOf(line, world) == LineKind::kRowOfWorld;
                        });
}

std::string DescribePlaces(const std::vector<RankPlace>& places) {
  std::vector<std::string> hosts;
  std::map<int, std::set<int>> cores_of_machine;
  std::map<int, size_t> ranks_of_machine;
  for (const RankPlace& place : places) {
    if (std::find(hosts.begin(), hosts.end(), place.host) == hosts.end()) {
      hosts.push_back(place.host);
    }
    cores_of_machine[place.machine].insert(place.cores.begin(),
                                           place.cores.end());
    ++ranks_of_machine[place.machine];
  }
  size_t cores = 0;
  bool oversubscribed = false;
  for (const auto& [machine, own] : cores_of_machine) {
    cores += own.size();
    oversubscribed = oversubscribed || ranks_of_machine[machine] > own.size();
  }
  constexpr size_t kNamed = 8;
  std::string names = absl::StrJoin(
      hosts.begin(), hosts.begin() + std::min(hosts.size(), kNamed), ", ");
  if (hosts.size() > kNamed) names += ", ...";
  return absl::StrCat(
      support::Counted(places.size(), "rank"), ", ",
      support::Counted(hosts.size(), "host"), " (", names, ")",
      ranks_of_machine.size() < hosts.size()
          ? absl::StrCat(" on ",
                         support::Counted(ranks_of_machine.size(), "machine"))
          : "",
      ", ", support::Counted(cores, "core"),
      oversubscribed ? ", oversubscribed" : "");
}

std::string DescribeOthers(const std::vector<RankPlace>& places,
                           const std::vector<RankWork>& work) {
  std::map<int, double> own;  // CPUs used by the ranks of a machine
  for (size_t rank = 0; rank < places.size(); ++rank) {
    own[places[rank].machine] += work[rank].process / work[rank].seconds;
  }
  std::string worst;
  double largest = 0;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    if (work[rank].machine <= 0) continue;
    const double others =
        work[rank].machine / work[rank].seconds - own[places[rank].machine];
    const double share = others / work[rank].cpus;
    if (!worst.empty() && share <= largest) continue;
    largest = share;
    worst = support::DescribeOtherPrograms(others, work[rank].cpus);
  }
  return worst;
}

}  // namespace hvdlite::tools
