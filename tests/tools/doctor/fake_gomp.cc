// A library in place of GNU's OpenMP runtime.
int GompFunction() { return 1; }
