#include "trainers/data/sets/domain_split.h"

#include <algorithm>

#include "tools/support/input_error.h"

namespace hvdlite::trainers {
namespace {

using Names = std::vector<std::string>;

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
    throw InputError("no domain '" + name + "' in '" + directory.string() +
                     "'; its domains are " + JoinNames(domains));
  }
}

// Named once, for one purpose: what is trained on is not validated on.
void RequireDistinct(const DomainSplit& split) {
  Names seen;
  for (const Names* names : {&split.train, &split.validation}) {
    for (const std::string& name : *names) {
      if (Contains(seen, name)) {
        throw InputError("the domain '" + name +
                         "' is named twice; a domain is either for training "
                         "or for validation");
      }
      seen.push_back(name);
    }
  }
}

}  // namespace

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
    throw InputError("no domain of '" + directory.string() + "' is left for " +
                     (complete.train.empty() ? "training" : "validation") +
                     "; its domains are " + JoinNames(domains));
  }
  return complete;
}

std::string JoinNames(const Names& names) {
  std::string joined;
  for (const std::string& name : names) {
    joined += (joined.empty() ? "" : ", ") + name;
  }
  return joined;
}

}  // namespace hvdlite::trainers
