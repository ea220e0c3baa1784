// Stands for an OpenBLAS that knows A64FX and was told to take other kernels.
extern "C" {
const char* openblas_get_config() {
  return "OpenBLAS 0.3.29 DYNAMIC_ARCH NO_AFFINITY USE_OPENMP armv8 "
         "MAX_THREADS=64";
}
const char* openblas_get_corename() { return "armv8"; }
int openblas_get_parallel() { return 2; }
void sgemm_() {}
void sgemm_kernel_A64FX() {}
void sgemm_kernel_NEOVERSEV1() {}
}
