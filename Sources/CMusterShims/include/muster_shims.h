// Typed wrappers for the variadic functions and function-like macros that Swift cannot import.
// Contexts are `void *`, so that this module includes no header of the libraries it wraps.
#pragma once
#include <stdint.h>

// libopus: `opus_encoder_ctl` is variadic. Returns 0 or an Opus error code.
int muster_opus_encoder_set(void *encoder, int request, int32_t value);

// libvpx: initialisers are macros (they pass the ABI version), controls are variadic. Return 0 or a
// vpx error code.
int muster_vp8_encoder_init(void *context, const void *config);
int muster_vp8_encoder_set(void *context, int control, int value);
int muster_vp8_decoder_init(void *context);
/// 1 if the last decoded frame depends on damaged or missing data, else 0.
int muster_vp8_decoder_is_corrupted(void *context);

/// Names the calling thread, for `top -H` and debuggers; truncated to 15 characters.
int muster_thread_name(const char *name);

/// Opens an eventfd that wakes a waiting thread; returns -errno on failure.
int muster_wake_open(void);
/// Makes the eventfd readable, permanently.
void muster_wake_signal(int fd);
/// Waits until CLOCK_BOOTTIME reaches `nanoseconds` and returns 0, or returns 1 if `wake_fd` is
/// signalled earlier.
int muster_wait_until(int wake_fd, int64_t nanoseconds);
/// CLOCK_BOOTTIME, a macro that Swift does not import, in nanoseconds.
int64_t muster_boot_nanoseconds(void);
/// CLOCK_BOOTTIME minus CLOCK_MONOTONIC in nanoseconds: the time suspended since boot.
int64_t muster_boot_ahead_of_monotonic(void);

/// Stops libasound from printing to standard error; its functions still return error codes.
void muster_silence_alsa(void);
