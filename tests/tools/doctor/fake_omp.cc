// Stands for LLVM's OpenMP runtime.
int OmpFunction() { return 5; }
