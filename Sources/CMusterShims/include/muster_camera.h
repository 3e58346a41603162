// A V4L2 camera: the ioctls, whose request numbers and formats Swift cannot import.
// Functions return 0 (or a descriptor, count or index) on success and -errno on failure.
#pragma once
#include <stdint.h>

#define MUSTER_CAMERA_BUFFERS 4

/// One way a camera can deliver pictures. `numerator / denominator` is the time per frame.
typedef struct {
  uint32_t fourcc;
  uint32_t width;
  uint32_t height;
  uint32_t numerator;
  uint32_t denominator;
} muster_camera_mode;

/// What was agreed with the driver, and the buffers shared with it.
typedef struct {
  int fd;
  muster_camera_mode mode;
  uint32_t stride;
  uint32_t image_bytes;
  int is_full_range;
  uint32_t buffer_count;
  void *buffers[MUSTER_CAMERA_BUFFERS];
  uint32_t lengths[MUSTER_CAMERA_BUFFERS];
} muster_camera;

/// One filled buffer; give it back with `muster_camera_requeue`.
typedef struct {
  uint32_t index;
  const void *data;
  uint32_t length;
  /// The driver's CLOCK_MONOTONIC time in nanoseconds, or 0 when it keeps no such time.
  int64_t monotonic_nanoseconds;
  /// The driver says that the picture is damaged.
  int is_damaged;
} muster_camera_frame;

/// Opens a capture device that can stream; -ENODEV when it is something else.
int muster_camera_open(const char *path);
/// The name the driver gives the device, as a C string.
int muster_camera_name(int fd, char *name, int capacity);
/// Every discrete size and rate the driver lists; ranges are sampled at the usual sizes.
int muster_camera_modes(int fd, muster_camera_mode *modes, int capacity);
/// Asks for `wanted`; `camera->mode` is what the driver granted. Takes over `fd`.
int muster_camera_start(int fd, muster_camera_mode wanted, muster_camera *camera);
/// The next filled buffer, waiting at most `timeout_ms`; -EAGAIN when there is none by then,
/// -ECANCELED when `wake_fd` became readable first.
int muster_camera_dequeue(muster_camera *camera, int wake_fd, int timeout_ms,
                          muster_camera_frame *frame);
int muster_camera_requeue(muster_camera *camera, uint32_t index);
/// Stops, unmaps and closes.
void muster_camera_close(muster_camera *camera);
