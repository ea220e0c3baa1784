// Writes small files in the format of CullPDB and CB513 (protein_set.h), with
// proteins whose secondary structure a network learns quickly. Use it to try a
// trainer without the real data.
//
//   generate_pssp --output DIR --proteins 200 --test-proteins 40
//   generate_pssp --output DIR --filtered     # the files that studies use
#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "support/flags.h"
#include "support/input_error.h"
#include "support/output_file.h"
#include "support/progress_line.h"
#include "trainers/data/run_generator.h"
#include "trainers/data/sets/patterns.h"
#include "trainers/data/sets/protein_set.h"

namespace {

using namespace hvdlite::trainers;  // NOLINT: this program is one of them

struct PsspGeneratorFlags {
  std::filesystem::path output;
  int64_t proteins = 200;
  int64_t test_proteins = 40;
  int64_t min_length = 20;
  int64_t max_length = 60;
  std::string format = "f4";
  bool filtered = false;
  bool plain = false;
  uint64_t seed = 1;
  bool overwrite = false;
};

void AddFlags(CLI::App& app, PsspGeneratorFlags& flags) {
  app.add_option("--output", flags.output, "Directory to write to")->required();
  hvdlite::support::AddPositive(app, "--proteins", flags.proteins,
                                "Number of proteins in the CullPDB file");
  hvdlite::support::AddPositive(app, "--test-proteins", flags.test_proteins,
                                "Number of proteins in the CB513 file");
  app.add_option("--min-length", flags.min_length, "Minimum number of residues")
      ->check(CLI::Range(int64_t{1}, kMaxProteinLength))
      ->capture_default_str();
  app.add_option("--max-length", flags.max_length, "Maximum number of residues")
      ->check(CLI::Range(int64_t{1}, kMaxProteinLength))
      ->capture_default_str();
  app.add_option("--format", flags.format,
                 "Element type: floats of 4 or 8 bytes")
      ->check(CLI::IsMember({"f4", "f8"}))
      ->capture_default_str();
  app.add_flag(
      "--filtered", flags.filtered,
      "Use the CullPDB file name of the proteins that are not similar to "
      "CB513's; train_transformer then trains on all of it and tests on "
      "CB513");
  app.add_flag("--plain", flags.plain, "Do not gzip the files");
  app.add_option("--seed", flags.seed, "Seed of the proteins")
      ->capture_default_str();
  hvdlite::support::AddOverwrite(app, flags.overwrite);
}

std::string TrainName(const PsspGeneratorFlags& flags) {
  return flags.filtered ? kFilteredCullPdbFile : kCullPdbFile;
}

std::vector<std::filesystem::path> Files(const PsspGeneratorFlags& flags,
                                         bool plain) {
  const std::string ending = plain ? "" : ".gz";
  return {TrainName(flags) + ending, kCb513File + ending};
}

void WriteFile(const PsspGeneratorFlags& flags,
               const std::filesystem::path& file, int64_t count,
               uint64_t seed) {
  WriteProteins(
      file,
      MakePatternProteins({.count = count,
                           .min_length = flags.min_length,
                           .max_length = flags.max_length,
                           .seed = seed}),
      flags.format == "f4" ? NpyElement::kFloat32 : NpyElement::kFloat64,
      hvdlite::support::StyleOfOutput());
}

void Generate(const PsspGeneratorFlags& flags) {
  if (flags.min_length > flags.max_length) {
    throw hvdlite::support::InputError(
        "--min-length is larger than --max-length");
  }
  const std::vector<std::filesystem::path> files = Files(flags, flags.plain);
  WriteDataSet(flags.output, files, Files(flags, !flags.plain), flags.overwrite,
               [&](const std::filesystem::path& directory) {
                 WriteFile(flags, directory / files[0], flags.proteins,
                           flags.seed);
                 // Uses the complement of the seed, so that test and training
                 // proteins differ.
                 WriteFile(flags, directory / files[1], flags.test_proteins,
                           ~flags.seed);
               });
  std::cout << "wrote " << flags.proteins << " and " << flags.test_proteins
            << " proteins to " << flags.output.string() << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  PsspGeneratorFlags flags;
  CLI::App app("Writes generated proteins in the format of CullPDB and CB513.",
               "generate_pssp");
  AddFlags(app, flags);
  return RunGenerator(app, argc, argv, [&] { Generate(flags); });
}
