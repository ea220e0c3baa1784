// Stands for GNU's OpenMP runtime.
int GompFunction() { return 1; }
