// A fake OpenBLAS that has kernels for A64FX but is set to use others.
#include <unistd.h>

#include <cstring>

extern "C" {
const char* openblas_get_config() {
  return "OpenBLAS 0.3.29 DYNAMIC_ARCH NO_AFFINITY USE_OPENMP armv8 "
         "MAX_THREADS=64";
}
const char* openblas_get_corename() {
  constexpr char kName[] = "OPENBLAS_CORETYPE=";
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, kName, sizeof kName - 1) == 0) {
      return *variable + sizeof kName - 1;
    }
  }
  return "armv8";
}
int openblas_get_parallel() { return 2; }
void sgemm_() {}
void sgemm_kernel_A64FX() {}
void sgemm_kernel_NEOVERSEV1() {}
}
