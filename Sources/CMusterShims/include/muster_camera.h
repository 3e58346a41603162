// Access to V4L2 cameras by ioctls, whose request numbers and pixel formats Swift cannot import.
// Functions return 0 (or a descriptor, count or index) on success and -errno on failure.
#pragma once
#include <stdint.h>

/// The maximum number of buffers shared with the driver.
#define MUSTER_CAMERA_BUFFERS 4

/// A capture mode. `numerator / denominator` is the frame interval in seconds.
typedef struct {
  /// The pixel format, V4L2_PIX_FMT_*.
  uint32_t fourcc;
  uint32_t width;
  uint32_t height;
  uint32_t numerator;
  uint32_t denominator;
} muster_camera_mode;

/// A streaming camera: the mode granted by the driver, and the mapped buffers.
typedef struct {
  int fd;
  muster_camera_mode mode;
  /// The distance in bytes from one row of the first plane to the next.
  uint32_t stride;
  /// The size in bytes of an uncompressed frame, or the maximum size of a compressed one.
  uint32_t image_bytes;
  /// 1 if luma uses 0..255 rather than 16..235.
  int is_full_range;
  uint32_t buffer_count;
  void *buffers[MUSTER_CAMERA_BUFFERS];
  uint32_t lengths[MUSTER_CAMERA_BUFFERS];
} muster_camera;

/// A filled buffer, to be returned with `muster_camera_requeue`.
typedef struct {
  uint32_t index;
  const void *data;
  uint32_t length;
  /// The driver's timestamp on CLOCK_MONOTONIC in nanoseconds; 0 if it uses another clock.
  int64_t monotonic_nanoseconds;
  /// 1 if the driver marked the frame as damaged (V4L2_BUF_FLAG_ERROR).
  int is_damaged;
} muster_camera_frame;

/// Opens a video capture device that supports streaming; -ENODEV for other devices.
int muster_camera_open(const char *path);
/// Copies the driver's name for the device, with a terminating zero.
int muster_camera_name(int fd, char *name, int capacity);
/// Lists the discrete sizes and rates; ranges are sampled at the usual sizes. Returns the count.
int muster_camera_modes(int fd, muster_camera_mode *modes, int capacity);
/// Starts streaming in the mode closest to `wanted` that the driver permits, stored in
/// `camera->mode`. Takes ownership of `fd`, even on failure.
int muster_camera_start(int fd, muster_camera_mode wanted, muster_camera *camera);
/// Waits at most `timeout_ms` for the next filled buffer; -EAGAIN on a timeout, -ECANCELED when
/// `wake_fd` became readable first.
int muster_camera_dequeue(muster_camera *camera, int wake_fd, int timeout_ms,
                          muster_camera_frame *frame);
/// Returns a buffer to the driver.
int muster_camera_requeue(muster_camera *camera, uint32_t index);
/// Stops streaming, unmaps the buffers and closes the device.
void muster_camera_close(muster_camera *camera);
