"""A small internet: hosts on a public segment, and homes behind NAT routers.

All homes use the same private addresses, as in reality: a private address that a member announces
leads others to their own network.
"""

import itertools
import json
import os
import shutil
import socket
import struct
import subprocess
import sys

from netns import inside, ip

KINDS = ("full", "preserving", "random", "blocked")

_numbers = itertools.count(1)
_here = os.path.dirname(os.path.abspath(__file__))

# Documentation addresses (RFC 5737), which exist in these namespaces only.
_PUBLIC = "198.51.100"
_NETWORK = "192.168.1"

# linux/netlink.h, linux/netfilter/nfnetlink.h and nfnetlink_conntrack.h.
_NETLINK_NETFILTER = 12
_DELETE_CONNECTIONS = 1 << 8 | 2
_REQUEST_WITH_ANSWER = 1 | 4


def reason_against_nat():
    """The reason why no routers can be created here; None if they can."""
    return None if shutil.which("nft") else "no nft: install nftables"


class Host:
    """A namespace with `eth0` at `address`; `outside` is its external address."""

    def __init__(self, namespace, address, outside):
        self.namespace = namespace
        self.address = address
        self.outside = outside


class Home:
    """A router at `outside` and the hosts behind it, from `network`.2 on; without hairpinning.

    - `full`: one port outside for all that a host sends from one port, open to everyone.
      Unsolicited UDP goes to the first host.
    - `preserving`: the port outside is the one inside, open to those that were sent to.
    - `random`: another port outside for each destination, open to that one.
    - `blocked`: no UDP either way; the rest passes.
    """

    def __init__(self, namespace, outside, kind, network):
        self.namespace = namespace
        self.outside = outside
        self.network = network
        self.free = itertools.count(2)
        self.hosts = []
        self.kind = None
        self.become(kind)

    def become(self, kind):
        """Replaces the router by one of another kind, without the state of the previous one."""
        nft(self.namespace, _rules(kind, self.network))
        forget_connections(self.namespace)
        self.kind = kind


class Internet:
    """Hosts and homes are added as they are asked for; `close` removes all of it. `delay` is the
    one-way delay over the public segment, in ms.
    """

    def __init__(self, delay=0):
        # Unique among concurrent runs by the process id, within this run by the number.
        self.prefix = f"mnat{os.getpid()}x{next(_numbers)}"
        self._delay = delay
        self._free = itertools.count(2)
        self._middle = f"{self.prefix}-sw"
        self._namespaces = []
        self._cables = []
        try:
            self._make_middle()
        except OSError:
            self.close()
            raise

    def host(self, name):
        """A host on the public segment itself."""
        number = next(self._free)
        address = f"{_PUBLIC}.{number}"
        namespace = self._add(name)
        self._plug(number, namespace, "eth0")
        return Host(namespace, address, address)

    def home(self, kind, hosts=1, network=_NETWORK):
        """Adds a home behind a router of one of the KINDS."""
        number = next(self._free)
        namespace = self._add(f"r{number}")
        self._plug(number, namespace, "wan")
        ip(namespace=namespace, lines=[
            "link add lan type bridge mcast_snooping 0",
            f"addr add {network}.1/24 dev lan",
            "link set lan up",
        ])
        # The rules come first, so that the router never forwards unfiltered traffic.
        home = Home(namespace, f"{_PUBLIC}.{number}", kind, network)
        _forward(namespace, True)
        for place in range(hosts):
            home.hosts.append(self._move_in(home, f"r{number}h{place + 1}"))
        return home

    def lay_cable(self, host, home, interface):
        """One more interface of a host, towards a home: returns the address that it is to have, and
        the commands for ip(8), to be run in the host, that make it the host's default route."""
        number = next(home.free)
        ip(namespace=home.namespace, lines=[
            f"link add h{number} type veth peer name {interface} netns {host.namespace}",
            f"link set h{number} master lan up",
        ])
        address = f"{home.network}.{number}"
        return address, [
            f"addr add {address}/24 broadcast {home.network}.255 dev {interface}",
            f"link set {interface} up",
            f"route replace default via {home.network}.1 dev {interface}",
        ]

    def cut(self, one, other):
        """Silently drops all UDP between two homes or public hosts from now on."""
        lines = ["add table netdev wire",
                 "add set netdev wire severed { type ipv4_addr . ipv4_addr; }"]
        for end in (one, other):
            chain = f"netdev wire {_port(end)}"
            lines += [
                f"add chain {chain} {{ type filter hook ingress device {_port(end)} priority 0; }}",
                f"flush chain {chain}",
                f"add rule {chain} ip protocol udp ip saddr . ip daddr @severed drop",
            ]
        nft(self._middle, "\n".join([*lines, f"add element {_severed(one, other)}"]))

    def mend(self, one, other):
        """Ends `cut`."""
        nft(self._middle, f"delete element {_severed(one, other)}")

    def close(self):
        for cable in self._cables:
            cable.stdin.close()
            try:
                cable.wait(5)
            except subprocess.TimeoutExpired:
                cable.kill()
                cable.wait()
            cable.stdout.close()
        self._cables = []
        for namespace in self._namespaces:
            try:
                ip("netns", "del", namespace)
            except OSError as error:
                print(f"      left behind: {error}", file=sys.stderr)
        self._namespaces = []

    def _add(self, name):
        namespace = f"{self.prefix}-{name}"
        ip("netns", "add", namespace)
        self._namespaces.append(namespace)
        return namespace

    def _make_middle(self):
        self._add("sw")
        # The default gateway is a provider that forwards nothing: datagrams to unused addresses
        # are lost silently, as on the Internet.
        _forward(self._middle, False)
        ip(namespace=self._middle, lines=[
            "link add br0 type bridge mcast_snooping 0",
            f"addr add {_PUBLIC}.1/24 dev br0",
            "link set br0 up",
        ])

    def _plug(self, number, namespace, interface):
        """Adds an interface on the public segment, with its address and default route."""
        port = f"p{number}"
        if self._delay and not self._has_netem():
            self._lay_slow_cable(port, namespace, interface)
        else:
            ip(namespace=self._middle, lines=[
                f"link add {port} type veth peer name {interface} netns {namespace}"])
            if self._delay:
                _tc(self._middle, port, "netem", "delay", f"{self._delay}ms", "limit", "20000")
        ip("link", "set", port, "master", "br0", "up", namespace=self._middle)
        ip(namespace=namespace, lines=[
            "link set lo up",
            f"addr add {_PUBLIC}.{number}/24 broadcast {_PUBLIC}.255 dev {interface}",
            f"link set {interface} up",
            f"route add default via {_PUBLIC}.1 dev {interface}",
        ])

    def _has_netem(self):
        try:
            _tc(self._middle, "lo", "netem", "delay", "1ms")
        except OSError:
            return False
        return True

    def _lay_slow_cable(self, port, namespace, interface):
        """Connects an interface through a two-port switch that delays frames towards the host."""
        cable = subprocess.Popen(
            [sys.executable, "-B", os.path.join(_here, "switch.py"), "1",
             f"{namespace}:{interface}", f"{self._middle}:{port}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._cables.append(cable)
        if cable.stdout.readline().strip() != "ready":
            raise OSError("the switch does not start: is /dev/net/tun there?")
        cable.stdin.write(json.dumps({"port": 1, "way": "up", "delay": self._delay}) + "\n")
        cable.stdin.flush()
        if cable.stdout.readline().strip() != "ok":
            raise OSError("the switch has ended")

    def _move_in(self, home, name):
        namespace = self._add(name)
        host = Host(namespace, None, home.outside)
        host.address, lines = self.lay_cable(host, home, "eth0")
        ip(namespace=namespace, lines=["link set lo up", *lines])
        return host


def nft(namespace, text):
    """Applies rules by nft(8) in one transaction."""
    with inside(namespace):
        done = subprocess.run(["nft", "-f", "-"], input=text + "\n", capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"nft: {done.stderr.strip()}")


def forget_connections(namespace):
    """Flushes the connection tracking table, like `conntrack -F`, which is rarely installed.
    Otherwise existing flows would keep their translation under new rules."""
    # struct nlmsghdr, then struct nfgenmsg for every family; no attribute means every connection.
    request = struct.pack("=IHHIIBBH", 20, _DELETE_CONNECTIONS, _REQUEST_WITH_ANSWER, 1, 0, 0, 0, 0)
    with inside(namespace):
        kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
    with kernel:
        kernel.settimeout(5)
        kernel.send(request)
        code = -struct.unpack_from("=i", kernel.recv(4096), 16)[0]
    if code != 0:
        raise OSError(code, f"conntrack: {os.strerror(code)}")


def _rules(kind, network):
    if kind not in KINDS:
        raise ValueError(f"no kind of router: {kind}")
    random = " random,fully-random" if kind == "random" else ""
    to_first = f'iifname "wan" meta l4proto udp dnat to {network}.2' if kind == "full" else ""
    none = 'meta l4proto udp iifname "wan" drop\nmeta l4proto udp oifname "wan" drop'
    # A table is declared before it is deleted, so that this works if there is none.
    return f"""
        table ip nat
        delete table ip nat
        table ip nat {{
            chain leaving {{
                type nat hook postrouting priority 100;
                oifname "wan" masquerade{random}
            }}
            chain arriving {{
                type nat hook prerouting priority -100;
                {to_first}
            }}
        }}
        table ip filter
        delete table ip filter
        table ip filter {{
            chain passing {{
                type filter hook forward priority 0; policy drop;
                {none if kind == "blocked" else ""}
                iifname "lan" accept
                ct state established,related accept
                # To the first host of a full one, and to whom a gateway.py has mapped a port.
                ct status dnat accept
            }}
            # The router must not track an unsolicited datagram as a connection of its own: the host
            # behind it that uses this port would then get another port towards that sender.
            chain own {{
                type filter hook input priority 0; policy accept;
                iifname "wan" meta l4proto udp drop
            }}
        }}"""


def _port(end):
    """The interface of the public segment that a home or a public host is plugged into."""
    return f"p{end.outside.rsplit('.', 1)[1]}"


def _severed(one, other):
    pairs = f"{one.outside} . {other.outside}, {other.outside} . {one.outside}"
    return f"netdev wire severed {{ {pairs} }}"


def _forward(namespace, does):
    # Set in both cases: a new namespace may inherit the machine's setting.
    with inside(namespace):
        with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as file:
            file.write(str(int(does)))


def _tc(namespace, interface, *discipline):
    if not shutil.which("tc"):
        raise OSError("no tc")
    done = subprocess.run(
        ["tc", "-n", namespace, "qdisc", "replace", "dev", interface, "root", *discipline],
        capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"tc: {done.stderr.strip()}")
