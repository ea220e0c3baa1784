#include "trainers/data/sets/pattern_proteins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace hvdlite::trainers {
namespace {

ProteinSet Make(int64_t count, uint64_t seed) {
  return MakePatternProteins({.count = count, .seed = seed});
}

// Residue kinds, and one for "outside of the sequence".
constexpr int kSymbols = kResidueKinds + 1;
constexpr int kReach = 2;

int SymbolAt(const Protein& protein, int at) {
  const int length = static_cast<int>(protein.residues.size());
  return at < 0 || at >= length ? kSymbols - 1 : protein.residues[at];
}

// Naive Bayes over the five residues around a position: a table of how often
// each residue at each distance goes with each structure.
class WindowTable {
 public:
  explicit WindowTable(const ProteinSet& proteins) {
    for (auto& at_distance : counts_) {
      for (auto& of_symbol : at_distance) of_symbol.fill(1);
    }
    for (const Protein& protein : proteins) {
      for (int at = 0; at < static_cast<int>(protein.residues.size()); ++at) {
        totals_[protein.structures[at]] += 1;
        for (int distance = -kReach; distance <= kReach; ++distance) {
          counts_[distance + kReach][SymbolAt(protein, at + distance)]
                 [protein.structures[at]] += 1;
        }
      }
    }
  }

  int Predict(const Protein& protein, int at) const {
    std::array<double, kStructureKinds> scores = {};
    for (int kind = 0; kind < kStructureKinds; ++kind) {
      const double total = totals_[kind] + kSymbols;
      scores[kind] = std::log(total);
      for (int distance = -kReach; distance <= kReach; ++distance) {
        scores[kind] += std::log(
            counts_[distance + kReach][SymbolAt(protein, at + distance)][kind] /
            total);
      }
    }
    return static_cast<int>(std::max_element(scores.begin(), scores.end()) -
                            scores.begin());
  }

  double MajorityShare() const {
    double sum = 0;
    for (const double total : totals_) sum += total;
    return *std::max_element(totals_.begin(), totals_.end()) / sum;
  }

 private:
  using Counts = std::array<double, kStructureKinds>;
  std::array<std::array<Counts, kSymbols>, 2 * kReach + 1> counts_;
  Counts totals_ = {};
};

TEST(PatternProteinsTest, AWindowTablePredictsFarMoreThanTheMajorityClass) {
  const WindowTable table(Make(200, /*seed=*/1));
  int correct = 0;
  int residues = 0;
  for (const Protein& protein : Make(40, /*seed=*/2)) {
    for (int at = 0; at < static_cast<int>(protein.residues.size()); ++at) {
      correct += table.Predict(protein, at) == protein.structures[at] ? 1 : 0;
      ++residues;
    }
  }
  EXPECT_LT(table.MajorityShare(), 0.5);
  EXPECT_GT(static_cast<double>(correct) / residues, 0.8);
}

TEST(PatternProteinsTest, TheStructureIsAFunctionOfFiveResidues) {
  std::map<std::vector<int>, int> structures;
  int repeated = 0;
  for (const Protein& protein : Make(2000, /*seed=*/1)) {
    for (int at = 0; at < static_cast<int>(protein.residues.size()); ++at) {
      std::vector<int> window;
      for (int distance = -kReach; distance <= kReach; ++distance) {
        window.push_back(SymbolAt(protein, at + distance));
      }
      const auto [entry, is_new] =
          structures.emplace(window, protein.structures[at]);
      if (!is_new) ++repeated;
      EXPECT_EQ(entry->second, protein.structures[at]);
    }
  }
  EXPECT_GT(repeated, 1000);
}

TEST(PatternProteinsTest, LengthsSpanTheRangeAndCountsAgree) {
  size_t shortest = kMaxProteinLength;
  size_t longest = 0;
  for (const Protein& protein : MakePatternProteins(
           {.count = 100, .min_length = 5, .max_length = 8, .seed = 1})) {
    EXPECT_EQ(protein.residues.size(), protein.structures.size());
    shortest = std::min(shortest, protein.residues.size());
    longest = std::max(longest, protein.residues.size());
  }
  EXPECT_EQ(shortest, 5U);
  EXPECT_EQ(longest, 8U);
}

TEST(PatternProteinsTest, DependOnTheSeedAlone) {
  const ProteinSet first = Make(20, /*seed=*/1);
  const ProteinSet again = Make(20, /*seed=*/1);
  const ProteinSet other = Make(20, /*seed=*/2);
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].residues, again[i].residues);
    EXPECT_EQ(first[i].structures, again[i].structures);
    EXPECT_NE(first[i].residues, other[i].residues);
  }
}

}  // namespace
}  // namespace hvdlite::trainers
