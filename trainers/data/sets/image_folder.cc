#include "trainers/data/sets/image_folder.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "tools/support/input_error.h"
#include "trainers/data/formats/find_file.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;

constexpr char kLayout[] = "expected DOMAIN/CLASS/*.jpg, *.jpeg or *.png";

bool HasImageExtension(const fs::path& file) {
  std::string extension = file.extension().string();
  for (char& c : extension) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

bool IsClassOrDomain(const fs::directory_entry& entry) {
  return entry.is_directory();
}

bool IsImage(const fs::directory_entry& entry) {
  return entry.is_regular_file() && HasImageExtension(entry.path());
}

// The names of what `accepts` takes, sorted. Throws InputError if there are
// none, saying that no `missing` is there.
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
    throw InputError("cannot read the directory '" + directory.string() +
                     "': " + error.code().message());
  }
  if (names.empty()) {
    throw InputError("no " + missing + " in '" + directory.string() + "'; " +
                     kLayout);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> ListClasses(const fs::path& domain) {
  return ListNames(domain, IsClassOrDomain, "folders of classes");
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
                                    const std::vector<std::string>& classes) {
  std::vector<LabelledFile> files;
  for (const std::string& domain : domains) {
    for (const std::string& name : ListClasses(directory / domain)) {
      const int64_t label =
          std::lower_bound(classes.begin(), classes.end(), name) -
          classes.begin();
      const fs::path folder = directory / domain / name;
      for (const std::string& file : ListNames(folder, IsImage, "images")) {
        files.push_back({.path = folder / file, .label = label});
      }
    }
  }
  return files;
}

}  // namespace

ImageFolder ListImageFolder(const fs::path& directory,
                            const DomainSplit& split) {
  RequireDataDirectory(directory);
  const std::vector<std::string> domains =
      ListNames(directory, IsClassOrDomain, "folders of domains");
  ImageFolder folder;
  folder.classes = ClassesOfAll(directory, domains);
  folder.domains = CompleteDomainSplit(directory, domains, split);
  folder.train = ListFiles(directory, folder.domains.train, folder.classes);
  folder.validation =
      ListFiles(directory, folder.domains.validation, folder.classes);
  return folder;
}

}  // namespace hvdlite::trainers
