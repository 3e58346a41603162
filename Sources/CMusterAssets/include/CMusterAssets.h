#ifndef MUSTER_ASSETS_H
#define MUSTER_ASSETS_H

#include <stddef.h>
#include <stdint.h>

/// One file of the call page, compiled in.
typedef struct {
  /// As a browser asks for it, beginning with a slash.
  const char *path;
  const char *media_type;
  const uint8_t *bytes;
  size_t size;
} muster_asset;

size_t muster_asset_count(void);

/// The asset at `index`, or one whose path is null beyond the last.
muster_asset muster_asset_at(size_t index);

#endif
