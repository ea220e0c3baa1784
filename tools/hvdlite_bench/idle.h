// What an idle process costs.
#pragma once

namespace hvdlite::tools {

// Joins the world, does nothing for `seconds`, and prints on rank 0 the CPU
// time that passed meanwhile in the process, all threads together, as a share
// of one core: the largest of all ranks. Collective.
void MeasureIdle(double seconds);

}  // namespace hvdlite::tools
