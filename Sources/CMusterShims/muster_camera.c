#include "muster_camera.h"

#include <errno.h>
#include <fcntl.h>
#include <libv4l2.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CAPTURE V4L2_BUF_TYPE_VIDEO_CAPTURE

static int control(int fd, unsigned long request, void *argument) {
  int result;
  do result = v4l2_ioctl(fd, request, argument);
  while (result < 0 && errno == EINTR);
  return result < 0 ? -errno : 0;
}

static int query(int fd, struct v4l2_capability *capability) {
  memset(capability, 0, sizeof *capability);
  return ioctl(fd, VIDIOC_QUERYCAP, capability) < 0 ? -errno : 0;
}

int muster_camera_open(const char *path) {
  // Non-blocking, because waits use `poll`, which the wake descriptor can interrupt.
  int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -errno;
  // Queried without libv4l2, which prints to standard error for devices that are not cameras.
  struct v4l2_capability capability;
  int error = query(fd, &capability);
  unsigned can = (capability.capabilities & V4L2_CAP_DEVICE_CAPS) ? capability.device_caps
                                                                  : capability.capabilities;
  if (error != 0 || !(can & V4L2_CAP_VIDEO_CAPTURE) || !(can & V4L2_CAP_STREAMING)) {
    close(fd);
    return error != 0 ? error : -ENODEV;
  }
  // If libv4l2 does not support the device, its functions pass calls through to the driver.
  v4l2_fd_open(fd, 0);
  return fd;
}

int muster_camera_name(int fd, char *name, int capacity) {
  struct v4l2_capability capability;
  int error = query(fd, &capability);
  if (error == 0) snprintf(name, (size_t)capacity, "%.32s", (const char *)capability.card);
  return error;
}

// The list of modes that is being filled.
typedef struct {
  muster_camera_mode *modes;
  int capacity;
  int count;
} listing;

static void add_mode(listing *list, unsigned fourcc, unsigned width, unsigned height,
                     struct v4l2_fract interval) {
  if (list->count == list->capacity) return;
  list->modes[list->count++] = (muster_camera_mode){
      fourcc, width, height, interval.numerator, interval.denominator};
}

static void add_intervals(int fd, listing *list, unsigned fourcc, unsigned width,
                          unsigned height) {
  struct v4l2_frmivalenum interval = {.pixel_format = fourcc, .width = width, .height = height};
  int found = 0;
  for (; list->count < list->capacity; interval.index++) {
    if (control(fd, VIDIOC_ENUM_FRAMEINTERVALS, &interval) != 0) break;
    found = 1;
    if (interval.type == V4L2_FRMIVAL_TYPE_DISCRETE) {
      add_mode(list, fourcc, width, height, interval.discrete);
    } else {
      // The shortest interval represents a range, because the driver clamps requests.
      add_mode(list, fourcc, width, height, interval.stepwise.min);
      break;
    }
  }
  if (!found) add_mode(list, fourcc, width, height, (struct v4l2_fract){1, 30});
}

static void add_stepwise(int fd, listing *list, unsigned fourcc,
                         const struct v4l2_frmsize_stepwise *range) {
  static const unsigned usual[][2] = {{320, 180}, {320, 240},  {640, 360},
                                      {640, 480}, {1280, 720}, {1920, 1080}};
  for (unsigned i = 0; i < sizeof usual / sizeof usual[0]; i++) {
    unsigned width = usual[i][0], height = usual[i][1];
    if (width < range->min_width || width > range->max_width || height < range->min_height ||
        height > range->max_height)
      continue;
    add_intervals(fd, list, fourcc, width, height);
  }
}

static void add_sizes(int fd, listing *list, unsigned fourcc) {
  struct v4l2_frmsizeenum size = {.pixel_format = fourcc};
  for (; list->count < list->capacity; size.index++) {
    if (control(fd, VIDIOC_ENUM_FRAMESIZES, &size) != 0) break;
    if (size.type == V4L2_FRMSIZE_TYPE_DISCRETE) {
      add_intervals(fd, list, fourcc, size.discrete.width, size.discrete.height);
    } else {
      add_stepwise(fd, list, fourcc, &size.stepwise);
      break;
    }
  }
}

int muster_camera_modes(int fd, muster_camera_mode *modes, int capacity) {
  listing list = {modes, capacity, 0};
  struct v4l2_fmtdesc format = {.type = CAPTURE};
  for (; list.count < capacity; format.index++) {
    if (control(fd, VIDIOC_ENUM_FMT, &format) != 0) break;
    add_sizes(fd, &list, format.pixelformat);
  }
  return list.count;
}

static int set_format(int fd, muster_camera_mode wanted, muster_camera *camera) {
  struct v4l2_format format = {.type = CAPTURE};
  format.fmt.pix.width = wanted.width;
  format.fmt.pix.height = wanted.height;
  format.fmt.pix.pixelformat = wanted.fourcc;
  format.fmt.pix.field = V4L2_FIELD_ANY;
  int error = control(fd, VIDIOC_S_FMT, &format);
  if (error != 0) return error;
  camera->mode.fourcc = format.fmt.pix.pixelformat;
  camera->mode.width = format.fmt.pix.width;
  camera->mode.height = format.fmt.pix.height;
  camera->stride = format.fmt.pix.bytesperline;
  camera->image_bytes = format.fmt.pix.sizeimage;
  camera->is_full_range = format.fmt.pix.quantization == V4L2_QUANTIZATION_FULL_RANGE;
  return 0;
}

static void set_rate(int fd, muster_camera_mode wanted, muster_camera *camera) {
  struct v4l2_streamparm parameter = {.type = CAPTURE};
  parameter.parm.capture.timeperframe.numerator = wanted.numerator;
  parameter.parm.capture.timeperframe.denominator = wanted.denominator;
  // A camera with a single rate may reject the request; the frames' timestamps then show the rate.
  int error = control(fd, VIDIOC_S_PARM, &parameter);
  struct v4l2_fract granted = parameter.parm.capture.timeperframe;
  int usable = error == 0 && granted.numerator > 0 && granted.denominator > 0;
  camera->mode.numerator = usable ? granted.numerator : wanted.numerator;
  camera->mode.denominator = usable ? granted.denominator : wanted.denominator;
}

static int map_buffers(muster_camera *camera) {
  struct v4l2_requestbuffers request = {
      .count = MUSTER_CAMERA_BUFFERS, .type = CAPTURE, .memory = V4L2_MEMORY_MMAP};
  int error = control(camera->fd, VIDIOC_REQBUFS, &request);
  if (error != 0) return error;
  unsigned count = request.count < MUSTER_CAMERA_BUFFERS ? request.count : MUSTER_CAMERA_BUFFERS;
  if (count == 0) return -ENOMEM;
  for (unsigned i = 0; i < count; i++) {
    struct v4l2_buffer buffer = {.index = i, .type = CAPTURE, .memory = V4L2_MEMORY_MMAP};
    if ((error = control(camera->fd, VIDIOC_QUERYBUF, &buffer)) != 0) return error;
    void *start = v4l2_mmap(NULL, buffer.length, PROT_READ | PROT_WRITE, MAP_SHARED, camera->fd,
                            buffer.m.offset);
    if (start == MAP_FAILED) return -errno;
    camera->buffers[i] = start;
    camera->lengths[i] = buffer.length;
    camera->buffer_count = i + 1;
    if ((error = control(camera->fd, VIDIOC_QBUF, &buffer)) != 0) return error;
  }
  return 0;
}

int muster_camera_start(int fd, muster_camera_mode wanted, muster_camera *camera) {
  memset(camera, 0, sizeof *camera);
  camera->fd = fd;
  int error = set_format(fd, wanted, camera);
  if (error == 0) {
    set_rate(fd, wanted, camera);
    error = map_buffers(camera);
  }
  if (error == 0) {
    int type = CAPTURE;
    error = control(fd, VIDIOC_STREAMON, &type);
  }
  if (error != 0) muster_camera_close(camera);
  return error;
}

static int wait_for_frame(muster_camera *camera, int wake_fd, int timeout_ms) {
  struct pollfd waits[2] = {{.fd = camera->fd, .events = POLLIN},
                            {.fd = wake_fd, .events = POLLIN}};
  int ready;
  do ready = poll(waits, 2, timeout_ms);
  while (ready < 0 && errno == EINTR);
  if (ready < 0) return -errno;
  if (waits[1].revents) return -ECANCELED;
  return ready == 0 ? -EAGAIN : 0;
}

int muster_camera_dequeue(muster_camera *camera, int wake_fd, int timeout_ms,
                          muster_camera_frame *frame) {
  int error = wait_for_frame(camera, wake_fd, timeout_ms);
  if (error != 0) return error;
  struct v4l2_buffer buffer = {.type = CAPTURE, .memory = V4L2_MEMORY_MMAP};
  error = control(camera->fd, VIDIOC_DQBUF, &buffer);
  if (error != 0) return error;
  if (buffer.index >= camera->buffer_count) return -EIO;
  frame->index = buffer.index;
  frame->data = camera->buffers[buffer.index];
  frame->length = buffer.bytesused < camera->lengths[buffer.index]
                      ? buffer.bytesused
                      : camera->lengths[buffer.index];
  frame->is_damaged = (buffer.flags & V4L2_BUF_FLAG_ERROR) != 0;
  int is_monotonic =
      (buffer.flags & V4L2_BUF_FLAG_TIMESTAMP_MASK) == V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC;
  frame->monotonic_nanoseconds = is_monotonic ? (int64_t)buffer.timestamp.tv_sec * 1000000000 +
                                                    (int64_t)buffer.timestamp.tv_usec * 1000
                                              : 0;
  return 0;
}

int muster_camera_requeue(muster_camera *camera, uint32_t index) {
  struct v4l2_buffer buffer = {.index = index, .type = CAPTURE, .memory = V4L2_MEMORY_MMAP};
  return control(camera->fd, VIDIOC_QBUF, &buffer);
}

void muster_camera_close(muster_camera *camera) {
  if (camera->fd < 0) return;
  int type = CAPTURE;
  control(camera->fd, VIDIOC_STREAMOFF, &type);
  for (unsigned i = 0; i < camera->buffer_count; i++)
    v4l2_munmap(camera->buffers[i], camera->lengths[i]);
  v4l2_close(camera->fd);
  camera->fd = -1;
  camera->buffer_count = 0;
}
