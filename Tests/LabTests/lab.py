"""Hosts on a LAN, each a network namespace: on the kernel's bridge, or on a switch with faults."""

import itertools
import json
import os
import subprocess
import sys

from netns import ip

_numbers = itertools.count(1)
_here = os.path.dirname(os.path.abspath(__file__))


class Host:
    """A namespace with `eth0`, 10.77.0.N/24 and fd77::N/64."""

    def __init__(self, lan, number):
        self.lan = lan
        self.number = number
        self.namespace = f"{lan.prefix}-h{number}"
        self.address = f"10.77.0.{number}"
        self.address6 = f"fd77::{number}"
        self.mac = f"02:00:00:00:00:{number:02x}"

    def impair(self, up=None, down=None):
        """Sets faults towards the switch and from it; switch.py lists the keys."""
        for way, faults in (("up", up), ("down", down)):
            if faults:
                self.lan.order({"port": self.number - 1, "way": way, **faults})

    def impair_both_directions(self, **faults):
        self.impair(up=faults, down=faults)

    def configure(self):
        ip(namespace=self.namespace, lines=[
            "link set lo up",
            f"link set eth0 address {self.mac}",
            f"addr add {self.address}/24 broadcast 10.77.0.255 dev eth0",
            f"addr add {self.address6}/64 dev eth0 nodad",
            "link set eth0 up",
            # Without a default route 255.255.255.255 is unreachable.
            "route add default via 10.77.0.254 dev eth0",
        ])


class Lan:
    """A LAN, made by `bridged` or `switched`; `close` removes it."""

    def __init__(self, count):
        # Unique among concurrent runs by the process id, within this run by the number.
        self.prefix = f"mlab{os.getpid()}x{next(_numbers)}"
        self.hosts = [Host(self, number) for number in range(1, count + 1)]
        self._namespaces = []
        self._switch = None

    @classmethod
    def bridged(cls, count):
        lan = cls(count)
        try:
            lan._make_bridge()
        except OSError:
            lan.close()
            raise
        return lan

    @classmethod
    def switched(cls, count, seed=1):
        lan = cls(count)
        try:
            lan._make_switch(seed)
        except OSError:
            lan.close()
            raise
        return lan

    def order(self, faults):
        if self._ask(faults) != "ok":
            raise OSError("the switch has ended")

    def measure(self):
        """Begins to measure what passes between the hosts."""
        self.order({"measure": True})

    def measured(self):
        """What has passed since `measure`, by the indices of sender and receiver."""
        report = json.loads(self._ask({"report": True}))
        return {(flow["from"], flow["to"]): flow for flow in report}

    def _ask(self, order):
        if self._switch is None:
            raise ValueError("a bridge has no faults")
        self._switch.stdin.write(json.dumps(order) + "\n")
        self._switch.stdin.flush()
        return self._switch.stdout.readline().strip()

    def split(self, *groups):
        """Partitions the LAN into groups of hosts, given by index from 0."""
        for group in groups:
            for place in group:
                self.order({"port": place, "reaches": [other for other in group if other != place]
                            or [-1]})

    def chain(self):
        """Connects each host only with the one before and the one after it."""
        for place in range(len(self.hosts)):
            reached = [place - 1, place + 1]
            self.order({"port": place,
                        "reaches": [one for one in reached if 0 <= one < len(self.hosts)]})

    def join(self):
        """Ends `split` and `chain`."""
        for place in range(len(self.hosts)):
            self.order({"port": place, "reaches": None})

    def close(self):
        if self._switch is not None:
            self._switch.stdin.close()
            try:
                self._switch.wait(5)
            except subprocess.TimeoutExpired:
                self._switch.kill()
                self._switch.wait()
            self._switch.stdout.close()
            self._switch = None
        for namespace in self._namespaces:
            try:
                ip("netns", "del", namespace)
            except OSError as error:
                print(f"      left behind: {error}", file=sys.stderr)
        self._namespaces = []

    def _add(self, namespace):
        ip("netns", "add", namespace)
        self._namespaces.append(namespace)

    def _make_bridge(self):
        middle = f"{self.prefix}-sw"
        self._add(middle)
        for host in self.hosts:
            self._add(host.namespace)
        lines = ["link add br0 type bridge mcast_snooping 0", "link set br0 up"]
        for host in self.hosts:
            port = f"p{host.number}"
            lines += [
                f"link add {port} type veth peer name eth0 netns {host.namespace}",
                f"link set {port} master br0 up",
            ]
        ip(namespace=middle, lines=lines)
        for host in self.hosts:
            host.configure()

    def _make_switch(self, seed):
        for host in self.hosts:
            self._add(host.namespace)
        ports = [f"{host.namespace}:eth0" for host in self.hosts]
        self._switch = subprocess.Popen(
            [sys.executable, "-B", os.path.join(_here, "switch.py"), str(seed), *ports],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._switch.stdout.readline().strip() != "ready":
            raise OSError("the switch does not start: is /dev/net/tun there?")
        for host in self.hosts:
            host.configure()
