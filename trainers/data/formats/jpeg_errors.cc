#include "trainers/data/formats/jpeg_errors.h"

#include <jerror.h>

namespace hvdlite::trainers {
namespace {

[[noreturn]] void Fail(j_common_ptr jpeg) {
  auto* errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  errors->manager.format_message(jpeg, errors->message);
  longjmp(errors->jump, 1);
}

bool LosesPixels(int warning) {
  return warning == JWRN_JPEG_EOF || warning == JWRN_HIT_MARKER ||
         warning == JWRN_HUFF_BAD_CODE || warning == JWRN_MUST_RESYNC;
}

void OnMessage(j_common_ptr jpeg, int level) {
  if (level < 0 && LosesPixels(jpeg->err->msg_code)) Fail(jpeg);
}

}  // namespace

jpeg_error_mgr* Install(JpegErrors& errors) {
  jpeg_std_error(&errors.manager);
  errors.manager.error_exit = Fail;
  errors.manager.emit_message = OnMessage;
  return &errors.manager;
}

}  // namespace hvdlite::trainers
