// Typed wrappers for what Swift cannot import: variadic functions and function-like macros.
// Contexts are `void *`, so that this module needs no header of the libraries it wraps.
#pragma once
#include <stdint.h>

// libopus: `opus_encoder_ctl` and `opus_decoder_ctl` are variadic. 0 or an Opus error code.
int muster_opus_encoder_set(void *encoder, int request, int32_t value);
int muster_opus_encoder_get(void *encoder, int request, int32_t *value);
int muster_opus_decoder_set(void *decoder, int request, int32_t value);

// libvpx: initialisers are macros over ABI versions, controls are variadic. 0 or a vpx error code.
int muster_vp8_encoder_init(void *context, const void *config);
int muster_vp8_encoder_set(void *context, int control, int value);
int muster_vp8_decoder_init(void *context);
/// 1 when the last decoded picture rests on damaged or missing data, 0 when it does not.
int muster_vp8_decoder_is_corrupted(void *context);

/// Names the calling thread, for `top -H` and debuggers; cut to 15 characters.
int muster_thread_name(const char *name);
/// Asks for real-time or at least a better priority for the calling thread. Returns 0 when
/// something was granted, -errno when nothing was; callers go on either way.
int muster_raise_priority(void);
/// CPU time of the calling thread in nanoseconds.
int64_t muster_thread_cpu_nanoseconds(void);

/// An eventfd that wakes a thread which waits, or -errno.
int muster_wake_open(void);
void muster_wake_signal(int fd);
/// Waits until CLOCK_BOOTTIME reaches `nanoseconds`: 0 then, 1 when `wake_fd` was signalled first.
int muster_wait_until(int wake_fd, int64_t nanoseconds);
/// CLOCK_BOOTTIME, which Swift cannot name, in nanoseconds.
int64_t muster_boot_nanoseconds(void);
/// How far CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC: the time slept since boot.
int64_t muster_boot_ahead_of_monotonic(void);

/// Stops libasound from writing to standard error: its errors come back as codes as well.
void muster_silence_alsa(void);
