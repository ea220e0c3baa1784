// Golden texts: what the tests of a program expect it to say, all of it in one
// file, so that words can be improved in one place. Tests assert what happens;
// the file has how it is told.
#pragma once

#include <string>

namespace hvdlite::testing {

// Expects `text` to be what the file of hvdlite_golden_texts() has for this
// call: the first one of this test, the second one, ... Run by itself with
// --update, the test program writes the file instead.
void ExpectGolden(const std::string& text);

}  // namespace hvdlite::testing
