"""What an interop check gets: `muster` nodes and Python peers, both ended when the check ends."""

import os
import socket
import sys

from check import Context
from node import Node
from peer.crypto import Identity

HERE = os.path.dirname(os.path.abspath(__file__))

# Without media: what most checks need.
QUIET = {"video": "none", "audio": "none"}


def has_ipv6():
    """Whether loopback has IPv6."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as file:
            file.bind(("::1", 0))
    except OSError:
        return False
    return True


def address(node):
    """The IPv4 address of a node, which must not listen on IPv6 only."""
    return f"127.0.0.1:{node.port}"


def latest(node, name, **fields):
    """The newest event of this name so far."""
    return node.all(name, **fields)[-1]


class InteropContext(Context):
    """Waits use the limit of `Node.wait`, which is generous enough for a busy machine."""

    def __init__(self, muster, folder, footage, is_long=False):
        super().__init__(muster, folder, footage, is_long=is_long)
        self._peers = []

    def start_muster(self, *more, name="anna", knows=(), call=False, **options):
        """A node of `muster` that announces to those that it `knows`, and nowhere else."""
        arguments = ["--no-lan", *more]
        arguments += _peers(knows)
        node = self.node(name, *arguments, call=call, **{**QUIET, **options})
        node.ready()
        return node

    def start_peer(self, *more, name="python", knows=(), listen=("127.0.0.1:0",), call=False,
                   sends=False, shares=False, record=False, invite=None):
        """A Python peer that announces to those that it `knows`."""
        folder = os.path.join(self.folder, name)
        arguments = ["--name", name, *more]
        if invite:
            arguments += ["--invite", invite]
        else:
            arguments += [self.channel, "--passphrase", self.passphrase]
        arguments += _peers(knows)
        for one in listen:
            arguments += ["--listen", one]
        if call:
            arguments += ["--call"]
        if sends:
            arguments += self.footage.arguments()
        if shares:
            arguments += self.footage.share_arguments()
        if record:
            arguments += ["--record", os.path.join(folder, "record")]
        node = Node("peer", name, arguments, folder, environment={"PYTHONPATH": HERE},
                    wrap=(sys.executable, "-B", "-m"))
        self._peers.append(node)
        self.nodes.append(node)
        node.ready()
        return node

    def linked(self, *nodes):
        """Waits until each has a link to each other one, and has it in its roster."""
        for one in nodes:
            for other in nodes:
                if one is not other:
                    one.wait("link.up", member=other.id)
                    one.wait("member.joined", member=other.id)

    def all_well(self):
        super().all_well()
        for node in self._peers:
            errors = node.errors.splitlines()
            self.expect(not errors, f"{node.name}: expected nothing on standard error,"
                                    f" saw {errors[-1:]}")


def _peers(nodes):
    """Nodes, or addresses as text, as options of `muster` and of the Python peer."""
    return [part for one in nodes
            for part in ("--peer", one if isinstance(one, str) else address(one))]


def seed_of_id(is_wanted):
    """A seed whose node id, as 64 hex digits, satisfies the predicate."""
    while True:
        seed = os.urandom(32)
        if is_wanted(Identity(seed).id.hex()):
            return seed.hex()
