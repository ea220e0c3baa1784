// Generated data that a small network learns in a few dozen steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/progress_line.h"
#include "trainers/data/formats/cifar10.h"
#include "trainers/data/formats/image_file.h"
#include "trainers/data/formats/mnist.h"
#include "trainers/data/sets/protein_set.h"

namespace hvdlite::trainers {

// `count` images of the ten digits, in turn, as a seven-segment display shows
// them; position, thickness and brightness of the segments and the noise are
// random. Depends on count and seed alone; images of different seeds differ.
// `style`: how far it is.
DigitSet MakePatternDigits(
    int64_t count, uint64_t seed,
    support::ProgressStyle style = support::ProgressStyle::kNone);

// `count` images of ten classes, in turn. A class is a colour and a direction
// of stripes; phase, width and contrast of the stripes and the noise are
// random. Depends on count and seed alone; images of different seeds differ.
// `style`: how far it is.
ImageSet MakePatternImages(
    int64_t count, uint64_t seed,
    support::ProgressStyle style = support::ProgressStyle::kNone);

// The four domains and seven classes of PACS, sorted.
const std::vector<std::string>& PacsDomains();
const std::vector<std::string>& PacsClasses();

// A picture of side x side pixels, of the classes and in the styles of PACS, as
// a small network can tell them apart. The class (an index of PacsClasses()) is
// a pattern of two colours, such as stripes or dots, whose period, position and
// polarity are random; the domain (an index of PacsDomains()) is the palette
// and the style, so that classes learnt in some domains hold in the others.
// Depends on its arguments alone.
RgbImage MakePatternPicture(int domain, int label, int64_t side, uint64_t seed,
                            int64_t index);

struct PatternProteinOptions {
  int64_t count = 0;
  int64_t min_length = 20;  // 1 to max_length
  int64_t max_length = 60;  // to kMaxProteinLength
  uint64_t seed = 1;
};

// Proteins of helices, strands and coils in turn, of random lengths. Each kind
// of segment favours some of the amino acids (those that favour it in nature;
// Chou and Fasman, "Prediction of Protein Conformation", Biochemistry 13,
// 1974), but one residue in five is any of the twenty.
//
// The structure is not that of the segment but a function of five residues, so
// it can be learned without error: the kind that most residues from i - 2 to
// i + 2 favour (where several do, that of residue i among them, or else helix
// before strand before coil) gives H, E or coil; a coil is T (turn) at G and N,
// S (bend) at S and D, and else L. The most frequent of the five is the
// structure of some 40 % of the residues. Depends on its arguments alone;
// proteins of different seeds differ.
ProteinSet MakePatternProteins(const PatternProteinOptions& options);

}  // namespace hvdlite::trainers
