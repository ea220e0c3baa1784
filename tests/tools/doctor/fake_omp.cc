// A library in place of LLVM's OpenMP runtime.
int OmpFunction() { return 5; }
