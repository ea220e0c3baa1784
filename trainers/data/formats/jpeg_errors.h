// Errors of libjpeg.
#pragma once

// jpeglib.h needs what stdio.h declares.
// clang-format off
#include <setjmp.h>
#include <stdio.h>
#include <jpeglib.h>
// clang-format on

namespace hvdlite::trainers {

// libjpeg reports an error by a call that must not return. It jumps back to the
// setjmp of the function that called libjpeg; between the two there are only
// libjpeg's frames, so that no destructor is skipped.
struct JpegErrors {
  jpeg_error_mgr manager;  // first, so that its address is this object's
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
};

// Prepares `errors` for the `err` of a libjpeg structure. Warnings that say
// that pixels were made up are errors too; others are ignored.
jpeg_error_mgr* Install(JpegErrors& errors);

}  // namespace hvdlite::trainers
