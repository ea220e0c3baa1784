// A program with two OpenMP runtimes. It fails when it is run: the doctor only
// reads its libraries.
int GompFunction();
int OmpFunction();

int main() { return GompFunction() + OmpFunction(); }
