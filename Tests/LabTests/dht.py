"""A DHT of OpenDHT's own `dhtnode`s: each on a host, since it listens on every address."""

import hashlib
import os
import shutil
import signal
import subprocess
import time

from node import Unexpected, clean_environment

PORT = 4222


def reason_against_dht(muster, folder):
    """Why members cannot look for each other in a DHT; None where they can."""
    if not shutil.which("dhtnode"):
        return "no dhtnode"
    # Bad use either way, which ends at once; the words tell the builds from each other.
    told = subprocess.run(
        [muster, "join", "probe", "--dht", "nowhere", "--data", os.path.join(folder, "probe")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
        env=clean_environment(folder))
    return None if "is not an address" in told.stderr else "this build has no DHT: make test-dht"


class Dht:
    """One `dhtnode` on each host; all begin with the first one."""

    def __init__(self, hosts, folder):
        self._hosts = hosts
        self._processes = []
        os.makedirs(folder, exist_ok=True)
        self._folder = folder
        try:
            for host in hosts:
                self._start(host)
        except OSError:
            self.close()
            raise

    def _start(self, host):
        command = ["ip", "netns", "exec", host.namespace, "dhtnode", "-p", str(PORT)]
        if host is not self._hosts[0]:
            command += ["-b", f"{self._hosts[0].address}:{PORT}"]
        # It ends with its standard input, which takes orders, such as put() below.
        with open(os.path.join(self._folder, host.namespace), "wb") as told:
            self._processes.append(subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=told, stderr=subprocess.STDOUT,
                env=clean_environment(self._folder), cwd=self._folder))

    def put(self, key, values):
        """Has the last one leave texts under a key of 20 bytes."""
        for value in values:
            self._processes[-1].stdin.write(f"p {key.hex()} {value}\n".encode())
        self._processes[-1].stdin.flush()

    def signal(self, number, *places):
        for place in places:
            self._processes[place].send_signal(number)

    def told(self, place):
        """What one of them has written so far."""
        with open(os.path.join(self._folder, self._hosts[place].namespace), "rb") as file:
            return file.read().decode(errors="replace")

    def close(self):
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass
        self._processes = []


def tag(channel, days=0):
    """Where members of a channel that has a name only leave announces, so many days from today."""
    secret = hashlib.blake2b(b"muster/1 name" + channel.encode(), digest_size=32).digest()
    day = int(time.time()) // 86_400 + days
    return hashlib.blake2b(b"muster/1 dht tag" + day.to_bytes(8, "big"), key=secret,
                           digest_size=20).digest()
