#include "trainers/data/sets/pattern_proteins.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "trainers/data/sets/random.h"

namespace hvdlite::trainers {
namespace {

enum SegmentKind { kHelix, kStrand, kCoil };
constexpr int kSegmentKinds = 3;

constexpr std::array<std::string_view, kSegmentKinds> kFavoured = {
    "EMALKQR",  // helix
    "VIYFWTC",  // strand
    "GNPSDH",   // coil
};
constexpr std::array<int, kSegmentKinds> kShortestSegment = {6, 4, 4};
constexpr uint64_t kSegmentLengths = 6;  // from the shortest on
constexpr double kFavouredShare = 0.8;
constexpr int64_t kKnownResidues = kResidueKinds - 1;  // all but X

uint8_t Index(std::string_view letters, char letter) {
  return static_cast<uint8_t>(letters.find(letter));
}

SegmentKind FavouredBy(char residue) {
  for (const SegmentKind kind : {kHelix, kStrand}) {
    if (kFavoured[kind].find(residue) != std::string_view::npos) return kind;
  }
  return kCoil;
}

char DrawResidue(SegmentKind kind, KeyedRandom& random) {
  const std::string_view from = random.Uniform() < kFavouredShare
                                    ? kFavoured[kind]
                                    : kResidueLetters.substr(0, kKnownResidues);
  return from[random.Below(from.size())];
}

std::string DrawSequence(int64_t length, KeyedRandom& random) {
  std::string sequence;
  auto kind = static_cast<SegmentKind>(random.Below(kSegmentKinds));
  while (static_cast<int64_t>(sequence.size()) < length) {
    const uint64_t segment =
        kShortestSegment[kind] + random.Below(kSegmentLengths);
    for (uint64_t i = 0; i < segment; ++i)
      sequence += DrawResidue(kind, random);
    // One of the two others.
    kind =
        static_cast<SegmentKind>((kind + 1 + random.Below(2)) % kSegmentKinds);
  }
  sequence.resize(length);
  return sequence;
}

// The kind that most residues around position `at` favour.
SegmentKind KindAt(std::string_view sequence, size_t at) {
  constexpr size_t kReach = 2;
  const size_t first = at < kReach ? 0 : at - kReach;
  std::array<int, kSegmentKinds> doubled_votes = {};
  for (const char residue : sequence.substr(first, at + kReach + 1 - first)) {
    doubled_votes[FavouredBy(residue)] += 2;
  }
  doubled_votes[FavouredBy(sequence[at])] += 1;  // decides between equals
  return static_cast<SegmentKind>(
      std::max_element(doubled_votes.begin(), doubled_votes.end()) -
      doubled_votes.begin());
}

char StructureAt(std::string_view sequence, size_t at) {
  switch (KindAt(sequence, at)) {
    case kHelix:
      return 'H';
    case kStrand:
      return 'E';
    case kCoil:
      break;
  }
  const char residue = sequence[at];
  if (residue == 'G' || residue == 'N') return 'T';
  if (residue == 'S' || residue == 'D') return 'S';
  return 'L';
}

}  // namespace

ProteinSet MakePatternProteins(const PatternProteinOptions& options) {
  ProteinSet proteins(options.count);
  for (int64_t i = 0; i < options.count; ++i) {
    KeyedRandom random{options.seed, static_cast<uint64_t>(i)};
    const auto lengths =
        static_cast<uint64_t>(options.max_length - options.min_length + 1);
    const std::string sequence = DrawSequence(
        options.min_length + static_cast<int64_t>(random.Below(lengths)),
        random);
    for (size_t at = 0; at < sequence.size(); ++at) {
      proteins[i].residues.push_back(Index(kResidueLetters, sequence[at]));
      proteins[i].structures.push_back(
          Index(kStructureLetters, StructureAt(sequence, at)));
    }
  }
  return proteins;
}

}  // namespace hvdlite::trainers
