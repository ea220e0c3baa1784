// Which domains of a folder of images are for training.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hvdlite::trainers {

// Names of the domains to train on and to validate on.
struct DomainSplit {
  std::vector<std::string> train;
  std::vector<std::string> validation;

  bool operator==(const DomainSplit&) const = default;
};

// Completes `split` by the rules of ListImageFolder. `domains` are those of
// `directory`, sorted. Throws InputError as ListImageFolder does.
DomainSplit CompleteDomainSplit(const std::filesystem::path& directory,
                                const std::vector<std::string>& domains,
                                const DomainSplit& split);

// "a, b, c"
std::string JoinNames(const std::vector<std::string>& names);

}  // namespace hvdlite::trainers
