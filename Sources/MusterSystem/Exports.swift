// The C library of the system, for all targets of the shell: a port to another system begins here.
@_exported import Glibc
