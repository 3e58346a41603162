#include "muster_shims.h"

#include <dlfcn.h>
#include <errno.h>
#include <opus.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
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

int muster_thread_name(const char *name) {
  char cut[16];
  snprintf(cut, sizeof cut, "%s", name);
  return -pthread_setname_np(pthread_self(), cut);
}

int muster_wake_open(void) {
  int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return fd < 0 ? -errno : fd;
}

void muster_wake_signal(int fd) {
  uint64_t one = 1;
  if (write(fd, &one, sizeof one) < 0) return;  // a full counter is already readable
}

static int64_t clock_nanoseconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t muster_boot_nanoseconds(void) { return clock_nanoseconds(CLOCK_BOOTTIME); }

int64_t muster_boot_ahead_of_monotonic(void) {
  int64_t monotonic = clock_nanoseconds(CLOCK_MONOTONIC);
  return clock_nanoseconds(CLOCK_BOOTTIME) - monotonic;
}

int muster_wait_until(int wake_fd, int64_t nanoseconds) {
  for (;;) {
    int64_t left = nanoseconds - muster_boot_nanoseconds();
    if (left < 0) left = 0;
    struct timespec timeout = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    struct pollfd wake = {.fd = wake_fd, .events = POLLIN};
    int ready = ppoll(&wake, 1, &timeout, NULL);
    if (ready > 0) return 1;
    if (left == 0) return 0;
  }
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
