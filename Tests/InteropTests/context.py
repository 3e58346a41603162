"""What an interop check gets: `muster` nodes and Python peers, both ended when the check ends."""

import os
import sys

from check import Context
from node import Node
from peer.crypto import Identity

HERE = os.path.dirname(os.path.abspath(__file__))

# Without media: what most checks need.
QUIET = {"video": "none", "audio": "none"}

# How long to wait for an event. Generous: no check is about speed.
LIMIT = 30


class Peer(Node):
    """A Python peer; its events and commands have the form of those of `muster`."""

    def wait(self, name, limit=LIMIT, since=0.0, where=None, **fields):
        return super().wait(name, limit, since, where, **fields)

    @property
    def address(self):
        return self.ready()["listen"][0]

    @property
    def key(self):
        return self.ready()["key"]

    def latest(self, name, **fields):
        """The newest event of this name that is there already, or None."""
        found = self.all(name, **fields)
        return found[-1] if found else None


class Muster(Node):
    def wait(self, name, limit=LIMIT, since=0.0, where=None, **fields):
        return super().wait(name, limit, since, where, **fields)

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"


class InteropContext(Context):
    def __init__(self, muster, folder, footage):
        super().__init__(muster, folder, False, footage)

    def start_muster(self, *more, name="anna", knows=(), call=False, **options):
        """A node of `muster` that announces to those that it `knows`, and nowhere else."""
        arguments = ["--no-lan", *more]
        for other in knows:
            arguments += ["--peer", other if isinstance(other, str) else other.address]
        node = self.node(name, *arguments, call=call, **{**QUIET, **options})
        node.__class__ = Muster
        node.ready()
        return node

    def start_peer(self, *more, name="python", knows=(), listen=("127.0.0.1:0",), call=False,
                   sends=False, record=False, invite=None):
        """A Python peer that announces to those that it `knows`."""
        folder = self._path(name)
        arguments = ["--name", name, *more]
        if invite:
            arguments += ["--invite", invite]
        else:
            arguments += [self.channel, "--passphrase", self.passphrase]
        for other in knows:
            arguments += ["--peer", other if isinstance(other, str) else other.address]
        for address in listen:
            arguments += ["--listen", address]
        if call:
            arguments += ["--call"]
        if sends:
            arguments += self.footage.arguments()
        if record:
            arguments += ["--record", os.path.join(folder, "record")]
        node = Peer("peer", name, arguments, folder, environment={"PYTHONPATH": HERE},
                    wrap=(sys.executable, "-B", "-m"))
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
        for node in self.nodes:
            if isinstance(node, Peer):
                errors = node.errors.splitlines()
                self.expect(not errors, f"{node.name}: expected nothing on standard error,"
                                        f" saw {errors[-1:]}")


def seed_of_id(is_wanted):
    """A seed whose node id, as 64 hex digits, is as wanted."""
    while True:
        seed = os.urandom(32)
        if is_wanted(Identity(seed).id.hex()):
            return seed.hex()
