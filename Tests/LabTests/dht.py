"""A DHT of OpenDHT's `dhtnode`s, one per host, because each listens on all addresses."""

import hashlib
import os
import shutil
import signal
import subprocess
import time

from node import Unexpected, clean_environment

PORT = 4222


def reason_against_dht(muster, folder):
    """The reason why the DHT checks cannot run; None if they can."""
    if not shutil.which("dhtnode"):
        return "no dhtnode"
    # A usage error in any build, which ends at once; its text shows whether the DHT is built in.
    reported = subprocess.run(
        [muster, "join", "probe", "--dht", "127.0.0.1:1", "--interface", "nowhere", "--data",
         os.path.join(folder, "probe")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
        env=clean_environment(folder))
    if "there is no interface" in reported.stderr:
        return None
    return "this build has no DHT: make build TRAITS=DHT"


class Dht:
    """One `dhtnode` on each host; the first one is the bootstrap node."""

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
        # It ends with its standard input, which takes commands, such as those of put().
        with open(os.path.join(self._folder, host.namespace), "wb") as reported:
            self._processes.append(subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=reported, stderr=subprocess.STDOUT,
                env=clean_environment(self._folder), cwd=self._folder))

    def put(self, key, values):
        """Makes the last node store texts under a key of 20 bytes."""
        for value in values:
            self._processes[-1].stdin.write(f"p {key.hex()} {value}\n".encode())
        self._processes[-1].stdin.flush()

    def signal(self, number, *places):
        for place in places:
            self._processes[place].send_signal(number)

    def output(self, place):
        """The output of one node so far."""
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
    """The DHT key of a channel without a passphrase, `days` from today."""
    secret = hashlib.blake2b(b"muster/1 name" + channel.encode(), digest_size=32).digest()
    day = int(time.time()) // 86_400 + days
    return hashlib.blake2b(b"muster/1 dht tag" + day.to_bytes(8, "big"), key=secret,
                           digest_size=20).digest()
