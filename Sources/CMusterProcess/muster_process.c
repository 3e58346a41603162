#include "muster_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stddef.h>
#include <sys/auxv.h>

static int argument_count;
static char **arguments;

// glibc passes the arguments of main to constructors, too; Swift reads them from /proc, which some
// containers lack.
//
// Where standard input, output or error is closed, /dev/null takes its number: otherwise a socket
// or file would, and what is meant for the user would go there. The Swift runtime opens some before
// main.
__attribute__((constructor)) static void start(int count, char **values) {
  argument_count = count;
  arguments = values;
  for (int descriptor = 0; descriptor <= 2; descriptor++) {
    if (fcntl(descriptor, F_GETFD) == -1 && open("/dev/null", O_RDWR) == -1) break;
  }
}

int muster_argument_count(void) { return argument_count; }

const char *muster_argument(int index) {
  return index >= 0 && index < argument_count ? arguments[index] : NULL;
}

const char *muster_executable(void) { return (const char *)getauxval(AT_EXECFN); }

int muster_flush_output(void) {
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
  return errno ? -errno : -EIO;
}
