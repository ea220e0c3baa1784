// A program with one OpenMP runtime. It fails when it is run: the doctor only
// reads its libraries.
int GompFunction();

int main() { return GompFunction(); }
