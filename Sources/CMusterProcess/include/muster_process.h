// What a command gets from whoever started it, before anything else of it runs.
#pragma once

/// The number of arguments of the process, its name included.
int muster_argument_count(void);
/// An argument of the process; NULL beyond the last.
const char *muster_argument(int index);

/// The path by which the process was started, which need not be absolute.
const char *muster_executable(void);

/// Writes what is left of `stdout`, a macro that Swift imports as unsafe. Returns 0 if all that was
/// ever printed has been written, else -errno.
int muster_flush_output(void);
