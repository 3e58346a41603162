#include "muster_system.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

int muster_thread_name(const char *name) {
  char cut[16];
  snprintf(cut, sizeof cut, "%s", name);
  return -pthread_setname_np(pthread_self(), cut);
}

void muster_thread_lower_priority(void) { setpriority(PRIO_PROCESS, (id_t)gettid(), 5); }

int muster_wake_open(void) {
  int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return fd < 0 ? -errno : fd;
}

void muster_wake_signal(int fd) {
  uint64_t one = 1;
  if (write(fd, &one, sizeof one) < 0) return;  // a full counter is already readable
}

void muster_wake_drain(int fd) {
  uint64_t count;
  if (read(fd, &count, sizeof count) < 0) return;  // somebody else has drained it
}

int muster_poll(struct pollfd *descriptors, uint32_t count, int64_t nanoseconds) {
  struct timespec timeout = {.tv_sec = nanoseconds / 1000000000,
                             .tv_nsec = nanoseconds % 1000000000};
  int ready = ppoll(descriptors, count, nanoseconds < 0 ? NULL : &timeout, NULL);
  return ready < 0 ? -errno : ready;
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
