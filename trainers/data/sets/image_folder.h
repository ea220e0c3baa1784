// Data sets of image files with a directory for each domain, which has a
// subdirectory for each class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "support/progress_line.h"

namespace hvdlite::trainers {

// Names of the domains for training and for validation.
struct DomainSplit {
  std::vector<std::string> train;
  std::vector<std::string> validation;

  bool operator==(const DomainSplit&) const = default;
};

// "a, b, c"
std::string JoinNames(const std::vector<std::string>& names);

struct LabelledFile {
  std::filesystem::path path;
  int64_t label = 0;  // index of a class

  bool operator==(const LabelledFile&) const = default;
};

struct ImageFolder {
  std::vector<std::string> classes;  // sorted; those of all domains
  DomainSplit domains;
  std::vector<LabelledFile> train;
  std::vector<LabelledFile> validation;
};

// Lists DIR/<domain>/<class>/*.{jpg,jpeg,png}, the layout of PACS (Li et al.,
// "Deeper, Broader and Artier Domain Generalization", ICCV 2017), and of
// torchvision's ImageFolder with the domains "train" and "val". A domain may
// lack classes of other domains. Names with a leading dot, and directories with
// names of images, are skipped. The order is that of the names' bytes: the same
// on every machine.
//
// If `split` names domains of one kind only, all others are of the other kind.
// If it names none, "val" is for validation and "train" for training if both
// exist; else the last domain is for validation and the others are for
// training. A kind keeps the order of the names. `style` is the style of the
// progress line; a network file system may take minutes to list many files.
//
// Throws an InputError that names the directory and the expected layout if it
// cannot be read, has no domains, a domain has no classes, or a class has no
// images; and if `split` names an unknown domain, one twice, or leaves none of
// a kind.
ImageFolder ListImageFolder(
    const std::filesystem::path& directory, const DomainSplit& split,
    support::ProgressStyle style = support::ProgressStyle::kNone);

enum class ImageDataFormat { kCifar10, kFolder };

// Returns kCifar10 if `directory` has CIFAR-10's binary files or the
// subdirectory cifar-10-batches-bin, else kFolder. Throws an InputError with
// the expected layout if the directory cannot be read or has no subdirectories
// either.
ImageDataFormat DetectImageDataFormat(const std::filesystem::path& directory);

}  // namespace hvdlite::trainers
