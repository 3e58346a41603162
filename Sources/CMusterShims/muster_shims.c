#include "muster_shims.h"

#include <dlfcn.h>
#include <opus.h>
#include <vpx/vp8cx.h>
#include <vpx/vp8dx.h>
#include <vpx/vpx_decoder.h>
#include <vpx/vpx_encoder.h>

int muster_opus_encoder_set(void *encoder, int request, int32_t value) {
  return opus_encoder_ctl(encoder, request, value);
}

int muster_vp8_encoder_init(void *context, const void *config) {
  return vpx_codec_enc_init((vpx_codec_ctx_t *)context, vpx_codec_vp8_cx(), config, 0);
}

int muster_vp8_encoder_set(void *context, int control, int value) {
  return vpx_codec_control_((vpx_codec_ctx_t *)context, control, value);
}

int muster_vp8_decoder_init(void *context) {
  vpx_codec_dec_cfg_t config = {.threads = 1};
  return vpx_codec_dec_init((vpx_codec_ctx_t *)context, vpx_codec_vp8_dx(), &config, 0);
}

int muster_vp8_decoder_is_corrupted(void *context) {
  int corrupted = 0;
  vpx_codec_err_t error =
      vpx_codec_control_((vpx_codec_ctx_t *)context, VP8D_GET_FRAME_CORRUPTED, &corrupted);
  return error != VPX_CODEC_OK || corrupted != 0;
}

static void ignore_alsa_error(const char *file, int line, const char *function, int error,
                              const char *format, ...) {
  (void)file, (void)line, (void)function, (void)error, (void)format;
}

void muster_silence_alsa(void) {
  // Looked up at run time rather than linked, so that users of the codecs alone need no libasound.
  typedef int (*setter)(void (*)(const char *, int, const char *, int, const char *, ...));
  setter set = (setter)dlsym(RTLD_DEFAULT, "snd_lib_error_set_handler");
  if (set) set(ignore_alsa_error);
}
