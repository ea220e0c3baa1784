// Where OpenMP puts its threads (OpenMP 5.2, 21.1.5 OMP_PROC_BIND and 21.1.6
// OMP_PLACES).
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/environment.h"

namespace hvdlite::doctor {

// The CPUs of each place of an explicit OMP_PLACES: "{0,1},{2,3}" or
// "{0:2}:2:2". nullopt for names ("cores"), for places that are left out
// ("!{3}"), and for what is no list.
std::optional<std::vector<std::vector<int>>> ParsePlaces(
    absl::string_view text);

// The cores that OMP_PLACES and OMP_PROC_BIND bind each of `threads` threads
// to, of a rank that may use `cpus` only: the runtime drops other CPUs, and
// places without any. Empty: threads are not bound, or that is not known
// ("sockets", "!{3}").
std::vector<std::set<int>> CoresOfThreads(
    const base::Environment& environment, int threads,
    const std::vector<int>& cpus,
    const std::function<int(int cpu)>& core_of_cpu);

// Whether OMP_PLACES lists CPUs, and none of `cpus`.
bool PlacesAreOutside(const base::Environment& environment,
                      const std::vector<int>& cpus);

}  // namespace hvdlite::doctor
