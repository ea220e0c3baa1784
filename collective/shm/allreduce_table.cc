#include "collective/shm/allreduce_table.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "collective/shm/allreduce_table_text.h"

namespace hvdlite::collective {
namespace {

constexpr AllreduceAlgorithm kAlgorithms[] = {
    AllreduceAlgorithm::kFlat, AllreduceAlgorithm::kOneShot,
    AllreduceAlgorithm::kTwoShot, AllreduceAlgorithm::kHierarchical};

std::optional<int64_t> ParseCount(absl::string_view text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < 1) return std::nullopt;
  return value;
}

std::optional<size_t> ParseBytes(absl::string_view text) {
  if (text == "inf") return std::numeric_limits<size_t>::max();
  int shift = 0;
  if (absl::ConsumeSuffix(&text, "K")) {
    shift = 10;
  } else if (absl::ConsumeSuffix(&text, "M")) {
    shift = 20;
  } else if (absl::ConsumeSuffix(&text, "G")) {
    shift = 30;
  }
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value >> (63 - shift) != 0) {
    return std::nullopt;
  }
  return value << shift;
}

std::optional<AllreduceAlgorithm> ParseAlgorithm(absl::string_view text) {
  for (const AllreduceAlgorithm algorithm : kAlgorithms) {
    if (NameOf(algorithm) == text) return algorithm;
  }
  // Names in tables of the first release.
  if (text == "at-once") return AllreduceAlgorithm::kOneShot;
  if (text == "slices") return AllreduceAlgorithm::kTwoShot;
  if (text == "two-levels") return AllreduceAlgorithm::kHierarchical;
  return std::nullopt;
}

}  // namespace

absl::string_view NameOf(AllreduceAlgorithm algorithm) {
  switch (algorithm) {
    case AllreduceAlgorithm::kFlat:
      return "flat";
    case AllreduceAlgorithm::kOneShot:
      return "one-shot";
    case AllreduceAlgorithm::kTwoShot:
      return "two-shot";
    case AllreduceAlgorithm::kHierarchical:
      return "hierarchical";
  }
  return "unknown";
}

absl::StatusOr<AllreduceTable::Line> AllreduceTable::ParseLine(
    absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.size() != 6) {
    return absl::InvalidArgumentError(
        "a line needs six columns: nodes, ranks per node, up to bytes, "
        "algorithm, chunk bytes, cached or streaming");
  }
  const auto parse_range = [](absl::string_view word) -> absl::StatusOr<Range> {
    const std::vector<absl::string_view> ends = absl::StrSplit(word, '-');
    Range range;
    const auto low = ParseCount(ends[0]);
    const bool open = ends.size() == 2 && ends[1].empty();
    const auto high = ends.size() == 1 ? low
                      : open           ? range.high
                                       : ParseCount(ends[1]);
    if (ends.size() > 2 || !low.has_value() || !high.has_value() ||
        *low > *high) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", word, "' is not a count from 1, or a range such as 2-8"));
    }
    return Range{*low, *high};
  };
  Line line;
  HVDLITE_ASSIGN_OR_RETURN(line.nodes, parse_range(words[0]));
  HVDLITE_ASSIGN_OR_RETURN(line.ranks_per_node, parse_range(words[1]));
  const auto up_to = ParseBytes(words[2]);
  const auto algorithm = ParseAlgorithm(words[3]);
  const auto chunk = ParseBytes(words[4]);
  if (!up_to.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[2], "' is not a number of bytes"));
  }
  if (!algorithm.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[3],
                     "' is not one of flat, one-shot, two-shot, hierarchical"));
  }
  if (!chunk.has_value() || *chunk > kMaxChunkBytes || *chunk % 64 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", words[4], "' is not a chunk size: a multiple of 64 bytes up to ",
        kMaxChunkBytes));
  }
  if (words[5] != "cached" && words[5] != "streaming") {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[5], "' is neither cached nor streaming"));
  }
  const bool across = *algorithm == AllreduceAlgorithm::kHierarchical;
  const bool inside = *algorithm == AllreduceAlgorithm::kOneShot ||
                      *algorithm == AllreduceAlgorithm::kTwoShot;
  if ((across && line.nodes.low < 2) || (inside && line.nodes.high > 1) ||
      ((across || inside) && line.ranks_per_node.low < 2)) {
    return absl::InvalidArgumentError(absl::StrCat(
        words[3], across ? " needs at least two nodes and" : " needs one node ",
        across ? "" : "and", " at least two ranks per node"));
  }
  if (*algorithm != AllreduceAlgorithm::kFlat && *chunk == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(words[3], " needs a chunk size"));
  }
  if (*algorithm == AllreduceAlgorithm::kOneShot && *up_to > *chunk) {
    return absl::InvalidArgumentError(
        "one-shot sends all bytes in one chunk; the chunk size is too small");
  }
  line.up_to_bytes = *up_to;
  line.choice = {*algorithm, *chunk, words[5] == "streaming"};
  line.text = std::string(text);
  return line;
}

absl::StatusOr<AllreduceTable> AllreduceTable::Parse(absl::string_view text) {
  AllreduceTable table;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    absl::StatusOr<Line> parsed = ParseLine(line);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", number, " '", line, "': ", parsed.status().message()));
    }
    table.lines_.push_back(*std::move(parsed));
  }
  return table;
}

AllreduceTable AllreduceTable::BuiltIn() {
  return *Parse(kAllreduceTableText);  // a test checks that it parses
}

AllreduceTable AllreduceTable::WithOneOrder() const {
  AllreduceTable table = *this;
  table.one_order_ = true;
  return table;
}

AllreduceChoice AllreduceTable::Choose(int nodes, int ranks_per_node,
                                       size_t bytes) const {
  const AllreduceChoice choice = FirstThatFits(nodes, ranks_per_node, bytes);
  if (one_order_ && nodes > 1 && ranks_per_node > 1 &&
      choice.algorithm == AllreduceAlgorithm::kFlat) {
    return {AllreduceAlgorithm::kHierarchical, kMaxChunkBytes, false};
  }
  return choice;
}

AllreduceChoice AllreduceTable::FirstThatFits(int nodes, int ranks_per_node,
                                              size_t bytes) const {
  for (const Line& line : lines_) {
    if (line.nodes.Contains(nodes) &&
        line.ranks_per_node.Contains(ranks_per_node) &&
        bytes <= line.up_to_bytes) {
      return line.choice;
    }
  }
  if (nodes > 1 || ranks_per_node < 2) return {};
  return {AllreduceAlgorithm::kTwoShot, size_t{512} << 10, false};
}

std::string AllreduceTable::Describe(int nodes, int ranks_per_node) const {
  std::string text;
  for (const Line& line : lines_) {
    if (line.nodes.Contains(nodes) &&
        line.ranks_per_node.Contains(ranks_per_node)) {
      absl::StrAppend(&text, line.text, "\n");
    }
  }
  return text;
}

}  // namespace hvdlite::collective
