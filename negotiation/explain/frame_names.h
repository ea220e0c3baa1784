// NamesOfFrames: the functions of a stack, for people.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::internal {

// Of each frame, an address inside a call, the function and its file:
// "train::Step(Batch const&) (train)". To look them up takes locks of the
// dynamic linker and reads files, which may take for ever; so a thread of its
// own does it, and this returns after 1 s, with the addresses of those that are
// not known then. Until that thread is back, all others are addresses, too.
std::vector<std::string> NamesOfFrames(std::vector<void*> frames);

}  // namespace hvdlite::internal
