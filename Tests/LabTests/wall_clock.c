// Preloaded into a node, this makes its time of day another one: WALL_CLOCK_OFFSET seconds later.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, time);
  const char *offset = getenv("WALL_CLOCK_OFFSET");
  if (result == 0 && clock == CLOCK_REALTIME && offset) time->tv_sec += atol(offset);
  return result;
}
