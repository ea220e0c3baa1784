#include "trainers/data/sets/patterns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace hvdlite::trainers {
namespace {

using Centroids = std::array<std::array<double, kDigitBytes>, kDigitClasses>;

// The mean image of each digit; `digits` has equal numbers of all.
Centroids MeanImages(const DigitSet& digits) {
  Centroids means = {};
  for (int64_t i = 0; i < digits.size(); ++i) {
    for (int64_t pixel = 0; pixel < kDigitBytes; ++pixel) {
      means[digits.labels[i]][pixel] +=
          static_cast<double>(digits.image(i)[pixel]) * kDigitClasses /
          static_cast<double>(digits.size());
    }
  }
  return means;
}

double SquaredDistance(const std::array<double, kDigitBytes>& mean,
                       const uint8_t* image) {
  double sum = 0;
  for (int64_t pixel = 0; pixel < kDigitBytes; ++pixel) {
    sum += (mean[pixel] - image[pixel]) * (mean[pixel] - image[pixel]);
  }
  return sum;
}

int NearestCentroid(const Centroids& means, const uint8_t* image) {
  return static_cast<int>(std::min_element(means.begin(), means.end(),
                                           [&](const auto& a, const auto& b) {
                                             return SquaredDistance(a, image) <
                                                    SquaredDistance(b, image);
                                           }) -
                          means.begin());
}

TEST(PatternDigitsTest, NearestCentroidsClassifyMostDigits) {
  const Centroids means = MeanImages(MakePatternDigits(1000, /*seed=*/1));
  const DigitSet test = MakePatternDigits(200, /*seed=*/2);
  int correct = 0;
  for (int64_t i = 0; i < test.size(); ++i) {
    correct += NearestCentroid(means, test.image(i)) == test.labels[i] ? 1 : 0;
  }
  EXPECT_GT(correct, 120);
}

TEST(PatternDigitsTest, ClassesAreEquallyFrequentAndSeedsDiffer) {
  const DigitSet digits = MakePatternDigits(100, /*seed=*/1);
  ASSERT_EQ(digits.pixels.size(), 100U * kDigitBytes);
  for (int label = 0; label < kDigitClasses; ++label) {
    EXPECT_EQ(std::count(digits.labels.begin(), digits.labels.end(), label),
              10);
  }
  EXPECT_EQ(digits.pixels, MakePatternDigits(100, /*seed=*/1).pixels);
  EXPECT_NE(digits.pixels, MakePatternDigits(100, /*seed=*/2).pixels);
}

ProteinSet Make(int64_t count, uint64_t seed) {
  return MakePatternProteins({.count = count, .seed = seed});
}

// Residue kinds, and one more kind outside the sequence.
constexpr int kSymbols = kResidueKinds + 1;
constexpr int kReach = 2;

int SymbolAt(const Protein& protein, int at) {
  const int length = static_cast<int>(protein.residues.size());
  return at < 0 || at >= length ? kSymbols - 1 : protein.residues[at];
}

// Naive Bayes over the five residues around a position: a table counts for each
// distance how often each residue occurs with each structure.
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

TEST(PatternProteinsTest, WindowTableIsMuchBetterThanTheMajorityClass) {
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

TEST(PatternProteinsTest, StructureIsAFunctionOfFiveResidues) {
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

TEST(PatternProteinsTest, LengthsCoverTheRange) {
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

TEST(PatternProteinsTest, DependOnlyOnTheSeed) {
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
