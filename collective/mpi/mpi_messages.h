// Messages by MPI. For this folder only.
#pragma once

#include <mpi.h>

#include <memory>

#include "collective/ring/point_to_point.h"

namespace hvdlite::collective {

// Does not own `comm`, whose errors must be returned; `name_of_rank` is for
// messages.
std::unique_ptr<PointToPoint> CreateMpiMessages(MPI_Comm comm,
                                                int name_of_rank);

}  // namespace hvdlite::collective
