// Generates data that a small network learns in a few dozen steps.
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

// Returns `count` images of the digits 0 to 9 in turn, as a seven-segment
// display shows them. Position, thickness and brightness of the segments and
// the noise are random. The result depends only on count and seed; images of
// different seeds differ. `style` is the style of the progress line.
DigitSet MakePatternDigits(
    int64_t count, uint64_t seed,
    support::ProgressStyle style = support::ProgressStyle::kNone);

// Returns `count` images of ten classes in turn. A class is a colour and a
// direction of stripes; phase, width and contrast of the stripes and the noise
// are random. The result depends only on count and seed; images of different
// seeds differ. `style` is the style of the progress line.
ImageSet MakePatternImages(
    int64_t count, uint64_t seed,
    support::ProgressStyle style = support::ProgressStyle::kNone);

// The four domains and seven classes of PACS, sorted.
const std::vector<std::string>& PacsDomains();
const std::vector<std::string>& PacsClasses();

// Returns a picture of side x side pixels that resembles PACS and is easy for a
// small network. The class (an index of PacsClasses()) is a pattern of two
// colours, such as stripes or dots, with random period, position and polarity.
// The domain (an index of PacsDomains()) is the palette and the style. So
// classes learnt in some domains are valid in the others. The result depends
// only on the arguments.
RgbImage MakePatternPicture(int domain, int label, int64_t side, uint64_t seed,
                            int64_t index);

struct PatternProteinOptions {
  int64_t count = 0;
  int64_t min_length = 20;  // 1 to max_length
  int64_t max_length = 60;  // up to kMaxProteinLength
  uint64_t seed = 1;
};

// Returns proteins of helices, strands and coils in turn, of random lengths.
// Each kind of segment favours some of the amino acids, as in nature (Chou and
// Fasman, "Prediction of Protein Conformation", Biochemistry 13, 1974), but one
// residue in five is any of the twenty.
//
// The structure is not that of the segment but a function of five residues, so
// that a network can learn it without error. The kind that most residues from i
// - 2 to i + 2 favour gives H (helix), E (strand) or coil. In a tie, residue i
// decides if its kind is among the candidates; else helix precedes strand, and
// strand coil. A coil is T (turn) at G and N, S (bend) at S and D, else L. The
// most frequent structure has about 40 % of the residues. The result depends
// only on the arguments; proteins of different seeds differ.
ProteinSet MakePatternProteins(const PatternProteinOptions& options);

}  // namespace hvdlite::trainers
