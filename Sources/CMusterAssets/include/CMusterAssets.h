#ifndef MUSTER_ASSETS_H
#define MUSTER_ASSETS_H

#include <stddef.h>
#include <stdint.h>

/// A file of the call page, embedded in the executable.
typedef struct {
  /// The URL path, with its leading slash.
  const char *path;
  /// The value of Content-Type.
  const char *media_type;
  const uint8_t *bytes;
  size_t size;
} muster_asset;

/// The number of assets.
size_t muster_asset_count(void);

/// The asset at `index`; an asset with a null path if `index` is out of range.
muster_asset muster_asset_at(size_t index);

#endif
