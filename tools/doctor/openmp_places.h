// Where OpenMP puts its threads (OpenMP 5.2, 21.1.5 OMP_PROC_BIND and 21.1.6
// OMP_PLACES).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/environment.h"

namespace hvdlite::doctor {

// The CPUs of each place of an explicit OMP_PLACES: "{0,1},{2,3}" or
// "{0:2}:2:2". nullopt for names ("cores"), for places that are left out
// ("!{3}"), and for what is no list.
std::optional<std::vector<std::vector<int>>> ParsePlaces(
    absl::string_view text);

// Whether OMP_PLACES and OMP_PROC_BIND give each of `threads` threads a core of
// its own, as far as the rank has so many. CPUs of one core have the same name.
bool BindsOneThreadPerCore(
    const base::Environment& environment, int threads,
    const std::function<std::string(int cpu)>& core_of_cpu);

}  // namespace hvdlite::doctor
