// Clocks, waiting and threads, where Swift cannot import what the system has.
#pragma once
#include <poll.h>
#include <stdint.h>

/// Names the calling thread, for `top -H` and debuggers; truncated to 15 characters.
int muster_thread_name(const char *name);

/// Raises the nice value of the calling thread, which gets a third of the CPU time of others where
/// it is short (setpriority(2), sched(7)).
void muster_thread_lower_priority(void);

/// Opens an eventfd that wakes a waiting thread; returns -errno on failure.
int muster_wake_open(void);
/// Makes the eventfd readable, until it is drained.
void muster_wake_signal(int fd);
/// Makes the eventfd unreadable until it is signalled again.
void muster_wake_drain(int fd);
/// Waits until one of the descriptors is ready, for at most so many nanoseconds of CLOCK_MONOTONIC;
/// for as long as it takes if that is negative. Returns the number of ready ones, or -errno.
int muster_poll(struct pollfd *descriptors, uint32_t count, int64_t nanoseconds);
/// Waits until CLOCK_BOOTTIME reaches `nanoseconds` and returns 0, or returns 1 if `wake_fd` is
/// signalled earlier.
int muster_wait_until(int wake_fd, int64_t nanoseconds);
/// CLOCK_BOOTTIME, a macro that Swift does not import, in nanoseconds.
int64_t muster_boot_nanoseconds(void);
/// CLOCK_BOOTTIME minus CLOCK_MONOTONIC in nanoseconds: the time suspended since boot.
int64_t muster_boot_ahead_of_monotonic(void);
