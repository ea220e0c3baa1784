// NamesOfFrames returns the readable names of a stack's functions.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::internal {

// For each frame, given as an address inside a call, returns the function and
// its file: "train::Step(Bucket const&) (train)". A lookup takes locks of the
// dynamic linker and reads files, and may hang. So another thread does it, and
// this function returns after 1 s, with addresses for the rest. While that
// thread hangs, later calls return only addresses.
std::vector<std::string> NamesOfFrames(std::vector<void*> frames);

}  // namespace hvdlite::internal
