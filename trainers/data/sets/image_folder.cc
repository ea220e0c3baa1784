#include "trainers/data/sets/image_folder.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <system_error>

#include "support/input_error.h"
#include "trainers/data/formats/cifar10.h"
#include "trainers/data/formats/data_file.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

constexpr char kLayout[] = "expected DOMAIN/CLASS/*.jpg, *.jpeg or *.png";

bool HasImageExtension(const fs::path& file) {
  std::string extension = file.extension().string();
  for (char& c : extension) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

// True for a directory; false for a broken link. Throws as ThrowCannotRead does
// if the check fails, since labels depend on the set of classes.
bool IsClassOrDomain(const fs::directory_entry& entry) {
  std::error_code error;
  const bool is_directory = entry.is_directory(error);
  if (error && error != std::errc::no_such_file_or_directory &&
      error != std::errc::not_a_directory &&
      error != std::errc::too_many_symbolic_link_levels) {
    ThrowCannotRead("cannot read '" + entry.path().string() + "'", error);
  }
  return is_directory;
}

// True also for files that cannot be read, such as broken links.
bool IsImage(const fs::directory_entry& entry) {
  std::error_code error;
  return HasImageExtension(entry.path()) && !entry.is_directory(error);
}

// Returns the sorted names that `accepts` accepts. Throws an InputError that
// names `missing` if there are none.
std::vector<std::string> ListNames(const fs::path& directory,
                                   bool (*accepts)(const fs::directory_entry&),
                                   const std::string& missing) {
  std::vector<std::string> names;
  try {
    for (const auto& entry : fs::directory_iterator(directory)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with('.') && accepts(entry)) names.push_back(name);
    }
  } catch (const fs::filesystem_error& error) {
    ThrowCannotRead("cannot read the directory '" + directory.string() + "'",
                    error.code());
  }
  if (names.empty()) {
    throw support::InputError("no " + missing + " in '" + directory.string() +
                              "'; " + kLayout);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> ListClasses(const fs::path& domain) {
  return ListNames(domain, IsClassOrDomain, "class directories");
}

std::vector<std::string> ClassesOfAll(const fs::path& directory,
                                      const std::vector<std::string>& domains) {
  std::set<std::string> classes;
  for (const std::string& domain : domains) {
    const std::vector<std::string> names = ListClasses(directory / domain);
    classes.insert(names.begin(), names.end());
  }
  return {classes.begin(), classes.end()};
}

std::vector<LabelledFile> ListFiles(const fs::path& directory,
                                    const std::vector<std::string>& domains,
                                    const std::vector<std::string>& classes,
                                    support::ProgressStyle style) {
  std::vector<fs::path> folders;
  for (const std::string& domain : domains) {
    for (const std::string& name : ListClasses(directory / domain)) {
      folders.push_back(directory / domain / name);
    }
  }
  support::ProgressLine line({.item = "listing images: directory",
                              .items = "directories",
                              .style = style});
  std::vector<LabelledFile> files;
  for (size_t i = 0; i < folders.size(); ++i) {
    const int64_t label = std::lower_bound(classes.begin(), classes.end(),
                                           folders[i].filename().string()) -
                          classes.begin();
    for (const std::string& file : ListNames(folders[i], IsImage, "images")) {
      files.push_back({.path = folders[i] / file, .label = label});
    }
    line.Show(static_cast<int64_t>(i + 1),
              static_cast<int64_t>(folders.size()));
  }
  return files;
}

bool Contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Names Without(const Names& names, const Names& excluded) {
  Names left;
  for (const std::string& name : names) {
    if (!Contains(excluded, name)) left.push_back(name);
  }
  return left;
}

void RequireKnown(const std::filesystem::path& directory, const Names& domains,
                  const Names& named) {
  for (const std::string& name : named) {
    if (Contains(domains, name)) continue;
    throw support::InputError("no domain '" + name + "' in '" +
                              directory.string() + "'; its domains are " +
                              JoinNames(domains));
  }
}

// Requires that a domain has only one purpose: training or validation.
void RequireDistinct(const DomainSplit& split) {
  Names seen;
  for (const Names* names : {&split.train, &split.validation}) {
    for (const std::string& name : *names) {
      if (Contains(seen, name)) {
        throw support::InputError(
            "the domain '" + name +
            "' is named twice; a domain is either for training "
            "or for validation");
      }
      seen.push_back(name);
    }
  }
}

// Completes `split` according to the rules of ListImageFolder. `domains` are
// those of `directory`, sorted. Throws InputError as ListImageFolder does.
DomainSplit CompleteDomainSplit(const std::filesystem::path& directory,
                                const Names& domains,
                                const DomainSplit& split) {
  RequireKnown(directory, domains, split.train);
  RequireKnown(directory, domains, split.validation);
  RequireDistinct(split);
  DomainSplit complete = split;
  if (split.train.empty() && split.validation.empty()) {
    if (Contains(domains, "train") && Contains(domains, "val")) {
      return {.train = {"train"}, .validation = {"val"}};
    }
    complete.validation = {domains.back()};
  }
  if (complete.train.empty()) {
    complete.train = Without(domains, complete.validation);
  }
  if (complete.validation.empty()) {
    complete.validation = Without(domains, complete.train);
  }
  if (complete.train.empty() || complete.validation.empty()) {
    throw support::InputError(
        "no domain of '" + directory.string() + "' is left for " +
        (complete.train.empty() ? "training" : "validation") +
        "; its domains are " + JoinNames(domains));
  }
  return complete;
}

}  // namespace

std::string JoinNames(const Names& names) {
  std::string joined;
  for (const std::string& name : names) {
    joined += (joined.empty() ? "" : ", ") + name;
  }
  return joined;
}

ImageFolder ListImageFolder(const fs::path& directory, const DomainSplit& split,
                            support::ProgressStyle style) {
  RequireDataDirectory(directory);
  const std::vector<std::string> domains =
      ListNames(directory, IsClassOrDomain, "domain directories");
  ImageFolder folder;
  folder.classes = ClassesOfAll(directory, domains);
  folder.domains = CompleteDomainSplit(directory, domains, split);
  folder.train =
      ListFiles(directory, folder.domains.train, folder.classes, style);
  folder.validation =
      ListFiles(directory, folder.domains.validation, folder.classes, style);
  return folder;
}

ImageDataFormat DetectImageDataFormat(const fs::path& directory) {
  RequireDataDirectory(directory);
  bool has_folders = false;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
      if (IsPartOfCifar10(entry.path())) return ImageDataFormat::kCifar10;
      has_folders = has_folders || IsClassOrDomain(entry);
    }
  } catch (const fs::filesystem_error& error) {
    ThrowCannotRead(
        "cannot read the data directory '" + directory.string() + "'",
        error.code());
  }
  if (has_folders) return ImageDataFormat::kFolder;
  throw support::InputError(
      "'" + directory.string() +
      "' holds neither CIFAR-10's binary files "
      "(data_batch_*.bin, test_batch.bin) nor directories of images "
      "(DOMAIN/CLASS/*.jpg); generate_cifar10 and generate_pacs "
      "make small data sets");
}

}  // namespace hvdlite::trainers
