"""DNS-SD on a lab host: an Avahi daemon with a D-Bus of its own, and python-zeroconf."""

import functools
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from node import Unexpected

SERVICE_TYPE = "_muster._udp"

_here = os.path.dirname(os.path.abspath(__file__))
_BUS = """<busconfig>
  <type>system</type>
  <listen>unix:path={path}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""
_DAEMON = """[server]
host-name={name}
allow-interfaces=eth0
[wide-area]
enable-wide-area=no
"""
_numbers = itertools.count(1)


def reason_against_avahi():
    """The reason why no daemon can run here; None if one can."""
    lacking = [one for one in ("avahi-daemon", "dbus-daemon") if not shutil.which(one)]
    return f"no {' and no '.join(lacking)}" if lacking else None


@functools.lru_cache(maxsize=None)
def python_with_zeroconf():
    """The first Python interpreter with python-zeroconf; None if there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            done = subprocess.run([python, "-c", "import zeroconf"], capture_output=True)
        except OSError:
            continue
        if done.returncode == 0:
            return python
    return None


class Avahi:
    """A private D-Bus and, after `start`, an Avahi daemon of a host. A node that should use them is
    started with `environment`."""

    def __init__(self, host):
        self._host = host
        # Short: the path of a UNIX socket has 107 bytes.
        self._folder = tempfile.mkdtemp(prefix="mlab-dbus-")
        path = os.path.join(self._folder, "bus")
        self.environment = {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={path}"}
        self._bus_path = path
        self._bus = None
        self._daemon = None

    def start_bus(self):
        self._write("bus.conf", _BUS.format(path=self._bus_path))
        self._bus = self._run("dbus-daemon", "--nofork", "--nopidfile", "--nosyslog",
                              f"--config-file={self._folder}/bus.conf")
        self._until(lambda: _answers(self._bus_path), self._bus, "D-Bus")

    def start(self):
        if self._bus is None:
            self.start_bus()
        # Unique host names, so that Avahi daemons do not compete for one.
        self._write("avahi.conf", _DAEMON.format(name=f"lab{os.getpid()}x{next(_numbers)}"))
        # Avahi always writes to /run, so it gets a private one.
        script = ('mount -t tmpfs none /run && mkdir /run/avahi-daemon && '
                  'exec avahi-daemon --no-drop-root --no-chroot --no-rlimits --no-proc-title '
                  f'-f {self._folder}/avahi.conf')
        self._daemon = self._run("unshare", "-m", "sh", "-c", script)
        # Its socket in the private /run shows that it is ready.
        run = os.path.join("/proc", str(self._daemon.pid), "root", "run/avahi-daemon/socket")
        self._until(lambda: os.path.exists(run), self._daemon, "avahi-daemon")

    def stop(self):
        """Ends the daemon, not the bus; it withdraws its services (mDNS goodbye packets)."""
        _end(self._daemon)
        self._daemon = None

    def kill(self):
        """Kills the daemon, so that it cannot withdraw its services."""
        self._daemon.kill()
        self._daemon.wait()
        self._daemon = None

    def close(self):
        _end(self._daemon)
        _end(self._bus)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, *command):
        log = open(os.path.join(self._folder, f"{command[0]}.log"), "ab")
        with log:
            return subprocess.Popen(
                ["ip", "netns", "exec", self._host.namespace, *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={"PATH": os.environ["PATH"], **self.environment})

    def _write(self, name, text):
        with open(os.path.join(self._folder, name), "w", encoding="ascii") as file:
            file.write(text)

    def _until(self, holds, process, what):
        end = time.monotonic() + 5
        while not holds():
            if process.poll() is not None or time.monotonic() > end:
                raise Unexpected(f"{what} does not start: {self._logs()[-500:]}")
            time.sleep(0.02)

    def _logs(self):
        text = ""
        for name in sorted(os.listdir(self._folder)):
            if name.endswith(".log"):
                with open(os.path.join(self._folder, name), errors="replace") as file:
                    text += file.read()
        return text


class Zeroconf:
    """python-zeroconf on a host: what it finds, and services that it registers."""

    def __init__(self, host, kind=SERVICE_TYPE):
        self._events = []
        self._changed = threading.Condition()
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", host.namespace, python_with_zeroconf(), "-B",
             os.path.join(_here, "zeroconf_peer.py"), kind],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.wait("ready")

    def register(self, name, address, port):
        self.process.stdin.write(f"{name} {address} {port}\n")
        self.process.stdin.flush()

    def wait(self, name, limit=10.0, since=0.0, **fields):
        """The first event of this name, with these fields, that came at `since` or later."""
        end = time.monotonic() + limit
        with self._changed:
            while True:
                for event in self.all(name, since, **fields):
                    return event
                left = end - time.monotonic()
                if left <= 0 or self.process.poll() is not None:
                    raise Unexpected(f"zeroconf: no {name} {fields} within {limit:g} s,"
                                     f" but {self._events[-5:]}")
                self._changed.wait(min(left, 0.5))

    def all(self, name, since=0.0, **fields):
        return [event for event in list(self._events)
                if event["event"] == name and event["at"] >= since
                and all(event.get(key) == value for key, value in fields.items())]

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(5)
        self.process.stdout.close()

    def _read(self):
        for line in self.process.stdout:
            event = {**json.loads(line), "at": time.monotonic()}
            with self._changed:
                self._events.append(event)
                self._changed.notify_all()


class SilentBus:
    """A D-Bus address that never answers, and counts connections."""

    def __init__(self):
        self._folder = tempfile.mkdtemp(prefix="mlab-dbus-")
        path = os.path.join(self._folder, "bus")
        self.environment = {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={path}"}
        self.callers = 0
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen(16)
        self._socket.settimeout(0.1)
        self._running = True
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self):
        self._running = False
        self._thread.join()
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self):
        callers = []
        while self._running:
            try:
                callers.append(self._socket.accept()[0])
            except TimeoutError:
                continue
            self.callers += 1
        for one in callers:
            one.close()


def _answers(path):
    with socket.socket(socket.AF_UNIX) as caller:
        try:
            caller.connect(path)
        except OSError:
            return False
    return True


def _end(process):
    if process is None or process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
