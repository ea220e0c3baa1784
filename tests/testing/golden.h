// Golden texts: one file has everything that a program prints in its tests, so
// that texts can be improved in one place. Tests check what happens; the file
// has the words.
#pragma once

#include <string>

namespace hvdlite::testing {

// Expects `text` to be the text in the file of hvdlite_golden_texts() for this
// call: the first one of this test, the second one, and so on. If you run the
// test program with --update, it writes the file instead.
void ExpectGolden(const std::string& text);

}  // namespace hvdlite::testing
