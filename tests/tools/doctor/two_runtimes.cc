// A program with two OpenMP runtimes. It fails when it is run: the doctor only
// looks at it.
int GompFunction();
int OmpFunction();

int main() { return GompFunction() + OmpFunction(); }
