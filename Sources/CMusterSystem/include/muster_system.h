// Clocks, waiting and threads, where Swift cannot import what the system has.
#pragma once
#include <stdint.h>

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
