// Folders of images: a folder for each domain, and in it one for each class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "support/progress_line.h"

namespace hvdlite::trainers {

// Names of the domains to train on and to validate on.
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

// Lists DIR/<domain>/<class>/*.{jpg,jpeg,png}, as PACS has it (Li et al.,
// "Deeper, Broader and Artier Domain Generalization", ICCV 2017), and, with the
// domains "train" and "val", torchvision's ImageFolder. A domain may lack
// classes that others have. Names with a leading dot and directories named as
// images are skipped. The order is that of the names' bytes: the same on every
// machine.
//
// Where `split` names domains of one kind only, all the others are of the other
// kind. Where it names none, "val" is for validation and "train" for training
// if both are there; else the last domain is for validation and the others are
// for training. A kind keeps the order of the names. `style`: how far it is, as
// a network's file system may take minutes to list many files.
//
// Throws InputError, naming the directory and what was expected, if it cannot
// be read, has no domains, a domain has no classes or a class no images; and if
// `split` names an unknown domain, one twice, or leaves none of a kind.
ImageFolder ListImageFolder(
    const std::filesystem::path& directory, const DomainSplit& split,
    support::ProgressStyle style = support::ProgressStyle::kNone);

enum class ImageDataFormat { kCifar10, kFolder };

// CIFAR-10 if `directory` has its binary files or its folder
// cifar-10-batches-bin, otherwise folders of images. Throws InputError, saying
// what is expected, if the directory cannot be read or has no folders either.
ImageDataFormat DetectImageDataFormat(const std::filesystem::path& directory);

}  // namespace hvdlite::trainers
