// A program with one OpenMP runtime. It fails when it is run: the doctor only
// looks at it.
int GompFunction();

int main() { return GompFunction(); }
