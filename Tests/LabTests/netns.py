"""Network namespaces: created by ip(8), entered to open sockets in them."""

import contextlib
import ctypes
import os
import subprocess

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def ip(*arguments, namespace=None, lines=None):
    """Runs ip(8); `lines` are commands for its batch mode, which costs one process for all."""
    command = ["ip"]
    if namespace:
        command += ["-n", namespace]
    if lines is not None:
        command += ["-batch", "-"]
    command += arguments
    text = None if lines is None else "\n".join(lines) + "\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def reason_against_namespaces():
    """The reason why no namespaces can be created here; None if they can."""
    if os.geteuid() != 0:
        return "not root"
    name = f"mlab{os.getpid()}-try"
    try:
        ip("netns", "add", name)
        ip("netns", "del", name)
    except OSError as error:
        return str(error)
    return None


@contextlib.contextmanager
def inside(namespace):
    """Within the block, this thread's sockets are opened in `namespace` (its name)."""
    if namespace is None:
        yield
        return
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    other = os.open(f"/var/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter(other)
        try:
            yield
        finally:
            _enter(own)
    finally:
        os.close(other)
        os.close(own)


def _enter(descriptor):
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")
