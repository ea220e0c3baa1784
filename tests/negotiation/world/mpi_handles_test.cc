// Handles that the library makes in MPI are freed: a program owns MPI and has
// two worlds. The first one is shut down, and the second one is left to
// MPI_Finalize.
#include <mpi.h>

#include <cstdio>
#include <vector>

#include "absl/time/time.h"
#include "base/config/config_loader.h"
#include "base/environment.h"
#include "negotiation/world/current_world.h"
#include "tests/testing/fakes/sum_operation.h"

namespace {

// Made and not freed.
int communicators = 0;
int groups = 0;
int operations = 0;
int attribute_keys = 0;

int Counted(int return_code, int& count, int change) {
  if (return_code == MPI_SUCCESS) count += change;
  return return_code;
}

}  // namespace

// MPI's profiling interface: these functions replace MPI's own.
extern "C" {

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  return Counted(PMPI_Comm_dup(comm, made), communicators, 1);
}
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag,
                          MPI_Comm* made) {
  return Counted(PMPI_Comm_create_group(comm, group, tag, made), communicators,
                 1);
}
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info,
                        MPI_Comm* made) {
  return Counted(PMPI_Comm_split_type(comm, type, key, info, made),
                 communicators, 1);
}
int MPI_Comm_free(MPI_Comm* comm) {
  return Counted(PMPI_Comm_free(comm), communicators, -1);
}
int MPI_Comm_group(MPI_Comm comm, MPI_Group* made) {
  return Counted(PMPI_Comm_group(comm, made), groups, 1);
}
int MPI_Group_incl(MPI_Group group, int count, const int ranks[],
                   MPI_Group* made) {
  return Counted(PMPI_Group_incl(group, count, ranks, made), groups, 1);
}
int MPI_Group_free(MPI_Group* group) {
  return Counted(PMPI_Group_free(group), groups, -1);
}
int MPI_Op_create(MPI_User_function* function, int commutes, MPI_Op* made) {
  return Counted(PMPI_Op_create(function, commutes, made), operations, 1);
}
int MPI_Op_free(MPI_Op* op) {
  return Counted(PMPI_Op_free(op), operations, -1);
}
int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function* copy,
                           MPI_Comm_delete_attr_function* remove, int* made,
                           void* state) {
  return Counted(PMPI_Comm_create_keyval(copy, remove, made, state),
                 attribute_keys, 1);
}
int MPI_Comm_free_keyval(int* keyval) {
  return Counted(PMPI_Comm_free_keyval(keyval), attribute_keys, -1);
}

}  // extern "C"

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  const auto config = hvdlite::LoadConfig(hvdlite::base::ProcessEnvironment());
  bool counted = false;
  for (int life = 0; life < 2; ++life) {
    if (!config.ok() || !hvdlite::internal::StartCurrentWorld(*config).ok()) {
      return 1;
    }
    const auto world = hvdlite::internal::CurrentWorldOrNull();
    std::vector<float> values(1, 1);
    const absl::Status status = hvdlite::testing::SubmitAndWait(
        world->coordinator(), hvdlite::testing::Sum("sum", values));
    if (!status.ok()) return 1;
    counted = communicators > 0 && operations > 0 && attribute_keys > 0;
    if (life == 1) break;
    const absl::Status closed = hvdlite::internal::CloseWorld(
        hvdlite::internal::TakeCurrentWorld(), "the first is over",
        absl::InfiniteDuration());
    if (!closed.ok()) return 1;
  }
  MPI_Finalize();
  if (counted && communicators == 0 && groups == 0 && operations == 0 &&
      attribute_keys == 0) {
    return 0;
  }
  std::fprintf(stderr,
               "not freed (or not counted): %d communicators, %d groups, %d "
               "operations, %d attribute keys\n",
               communicators, groups, operations, attribute_keys);
  return 1;
}
