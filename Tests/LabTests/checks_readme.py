"""README.md's examples, run as they stand, in order, as its readers paste them.

A block of shell commands that follows `<!-- on NAME -->` is for that machine: `both` laptops, the
`first`, the `second`, or the `server`. What a reader exports is there in later blocks; the files
that the first laptop writes reach the second one, as an invite does.
"""

import glob
import json
import os
import re
import shutil
import signal
import subprocess

from check import check
from checks_mesh import call_of
from netns import ip
from node import Node, clean_environment

# Seconds. On an idle machine the slowest of these waits takes 6.
LIMIT = 60
_README = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "README.md")
_BLOCK = re.compile(r"(?:<!-- on (\w+) -->\n+)?```sh\n(.*?)\n```", re.DOTALL)
# The address of the machine that serves as rendezvous in the examples.
_SERVER = "203.0.113.5"
# The commands that run until they are interrupted.
_LASTING = ("muster join ", "muster rendezvous")


@check(needs="namespaces", gate=True)
def the_readmes_examples_work_as_they_stand(t):
    sections = _sections()
    t.figure("sections with examples", len(sections), at_least=3)
    machines = _machines(t)
    for title, blocks in sections:
        running = []
        for where, script in blocks:
            t.require(where, f"{title}: no <!-- on … --> names a machine for {script!r}")
            for name in ("first", "second") if where == "both" else (where,):
                if name == "second":
                    _carry_files(machines["first"].folder, machines["second"].folder)
                running += machines[name].paste(script)
        nodes = [node for node in running if node.name in ("first", "second")]
        t.require(len(nodes) == 2, f"{title}: the two laptops do not both join")
        for one, other in (nodes, nodes[::-1]):
            one.wait("member.joined", LIMIT, member=other.id)
            one.wait("stats", LIMIT, where=lambda event, other=other: any(
                peer["member"] == other.id and peer["in"] for peer in event["peers"]))
        # Each may have started a call in the same moment; one of the two is then merged away.
        t.until(lambda nodes=nodes: None not in (calls := {call_of(node) for node in nodes})
                and len(calls) == 1, f"{title}: one call of both laptops", LIMIT)
        if len(running) > len(nodes):
            t.until(lambda: _SERVER in machines["first"].remembered_rendezvous(),
                    "a rendezvous that answered the first laptop", LIMIT)
        for node in reversed(running):
            node.signal(signal.SIGINT)
            t.figure(f"{node.name}'s exit code", node.ended(LIMIT), at_most=0)


def _sections():
    """(title, blocks) of each section that has examples; a block is (machine, commands). Blocks of
    other commands than `muster`, which build and install it, have no machine and are left out."""
    with open(_README, encoding="utf-8") as file:
        parts = re.split(r"^#+ (.*)$", file.read(), flags=re.MULTILINE)
    found = [
        (title, [(where, script) for where, script in _BLOCK.findall(text)
                 if where or re.search(r"^muster ", script, re.MULTILINE)])
        for title, text in zip(parts[1::2], parts[2::2])]
    return [(title, blocks) for title, blocks in found if blocks]


def _machines(t):
    """Three hosts of a LAN, on which the command is in the path, as after `make install`."""
    lan = t.lan(3)
    *laptops, server = lan.hosts
    # Its only address: from several it would answer by another one than it was asked at.
    ip(namespace=server.namespace, lines=[
        "addr flush dev eth0", f"addr add {_SERVER}/32 dev eth0", "route add 10.77.0.0/24 dev eth0"])
    for host in laptops:
        ip(namespace=host.namespace, lines=[f"route add {_SERVER}/32 dev eth0"])
    commands = os.path.join(t.folder, "bin")
    os.makedirs(commands)
    os.symlink(t.muster, os.path.join(commands, "muster"))
    return {name: _Machine(t, name, host, commands)
            for name, host in zip(("first", "second", "server"), lan.hosts)}


class _Machine:
    """One reader's shell: what it exported stays."""

    def __init__(self, t, name, host, commands):
        self._t, self._name, self._host = t, name, host
        self.folder = os.path.join(t.folder, name)
        os.makedirs(self.folder)
        self._environment = {"PATH": f"{commands}:{os.environ['PATH']}", "USER": name}
        self._exported = []

    def paste(self, script):
        """Runs a block; returns the node that its last line leaves running, in a list, or none."""
        *before, last = script.splitlines()
        if not last.startswith(_LASTING):
            before.append(last)
        if before:
            self._run("\n".join([*self._exported, *before]))
        self._exported += [line for line in before if line.startswith("export ")]
        if not last.startswith(_LASTING):
            return []
        # The shell becomes the command, so that the interruption reaches it.
        node = Node(
            self._t.muster, self._name, (), self.folder, self._host, self._environment,
            script="\n".join([*self._exported, f"exec {last}"]))
        if last.startswith("muster join "):
            self._t.nodes.append(node)
        else:
            self._t.later(node.close)
        return [node]

    def remembered_rendezvous(self):
        """The addresses of the rendezvous that have answered this machine's node."""
        # The exit code says whether this machine is well, which is not in question.
        report = json.loads(self._shell("muster doctor --json --no-port-mapping").stdout)
        asked = report["nat"]["rendezvous"] if report["nat"] else []
        return [one["name"].rsplit(":", 1)[0] for one in asked]

    def _run(self, script):
        done = self._shell(script)
        self._t.require(done.returncode == 0, f"{self._name}: {script!r}: {done.stderr[-300:]}")

    def _shell(self, script):
        return subprocess.run(
            ["ip", "netns", "exec", self._host.namespace, "bash", "-e", "-c", script],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT,
            cwd=self.folder, env=clean_environment(self.folder, self._environment))


def _carry_files(one, other):
    for path in glob.glob(os.path.join(one, "*.invite")):
        shutil.copy(path, other)
