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

/// Stops libasound from printing to standard error; its functions still return error codes.
void muster_silence_alsa(void);
