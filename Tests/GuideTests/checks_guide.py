"""Each page of the guide can be followed, and shows what its readers see."""

import os
import re
import time

from check import check
from devtools import Browser
from machines import Computer, stop_terminals
from netns import inside, ip
from page import Capture, Page
from terminal import commands

GUIDE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "docs", "guide")
# Seconds. On an idle machine the slowest of these waits takes 10.
LIMIT = 60
_NEEDS = ("root", "package", "tmux", "systemd-nspawn")


def _on_one_network(t, names):
    """The namespaces of machines on one LAN, by the names of the machines."""
    return {name: host.namespace for name, host in zip(names, t.lan(len(names)).hosts)}


def _at_home(t, names):
    """Machines at homes of their own, and the first one where all can reach it."""
    internet = t.internet()
    place = {names[0]: internet.host(names[0])}
    place |= {name: internet.home("preserving").hosts[0] for name in names[1:]}
    return {name: host.namespace for name, host in place.items()}


def _in_the_field(t, names):
    """Machines on networks without a router. Dora's is a switch with nobody else. Of the others each
    hears only its neighbours, by addresses of the link."""
    row = t.lan(len(names) - 1, faulty=True)
    for host in row.hosts:
        ip(namespace=host.namespace, lines=["addr flush dev eth0", "link set eth0 down",
                                            "link set eth0 up"])
    row.chain()
    switch = t.lan(1)
    ip(namespace=switch.hosts[0].namespace, lines=["addr flush dev eth0", "link set eth0 down"])
    hosts = [*row.hosts, *switch.hosts]
    others = [name for name in names if name != "dora"]
    return {name: host.namespace for name, host in zip([*others, "dora"], hosts)}


@check(needs=(*_NEEDS, "chromium", "ffmpeg"))
def the_first_call(t):
    _follow(t, "first-call", _on_one_network)


@check(needs=(*_NEEDS, "chromium", "ffmpeg"))
def channels_roles_invites(t):
    _follow(t, "channels", _on_one_network)


@check(needs=(*_NEEDS, "nft"))
def beyond_one_network(t):
    _follow(t, "beyond-the-lan", _at_home)


@check(needs=_NEEDS)
def in_the_field(t):
    _follow(t, "field", _in_the_field)


@check(needs=_NEEDS)
def a_node_without_a_screen(t):
    _follow(t, "headless", _on_one_network)


@check(needs=_NEEDS)
def scripts(t):
    _follow(t, "scripting", _on_one_network)


@check(needs=_NEEDS)
def when_something_is_wrong(t):
    _follow(t, "troubleshooting", _on_one_network)


def _follow(t, name, connect):
    """Does what a page says, on machines that `connect` puts into networks."""
    path = os.path.join(GUIDE, f"{name}.md")
    with open(path, encoding="utf-8") as file:
        page = Page(f"{name}.md", file.read())
    reader = _Reader(t, page, connect)
    for step in page.steps:
        reader.do(step)
    reader.leave()
    counts = {kind: sum(step.kind == kind for step in page.steps)
              for kind in ("type", "press", "see", "write", "carry", "picture", "skip", "elsewhere")}
    t.figures.append(", ".join(f"{count} to {kind}" for kind, count in counts.items() if count))
    t.figures += [f"not here, line {step.line}: {step.reason}"
                  for step in page.steps if step.kind in ("skip", "elsewhere")]
    if t.takes and not t.wrong:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page.text)


def _output(terminal):
    """What a terminal shows, without the commands that were typed."""
    return [line for line in terminal.screen() if not line.startswith(("$ ", "> "))]


class _Reader:
    """Somebody who sits at all machines of a page."""

    def __init__(self, t, page, connect):
        self._t, self._page = t, page
        self._folder = os.path.join(t.folder, "machines")
        os.makedirs(self._folder)
        self._socket = os.path.join(t.folder, "terminals")
        self._computers = {}
        # The terminals in which a command stays.
        self._busy = []
        names = list(dict.fromkeys(
            machine.split(":")[0] for step in page.steps for machine in step.machines))
        roots = self._online(names)
        namespaces = connect(t, names)
        # After the networks, so that it is before them that the machines end.
        t.later(self.close)
        for machine, namespace in namespaces.items():
            self._computers[machine] = Computer(machine, roots[machine], namespace, self._socket)

    def _online(self, names):
        """The machines' roots, in which all has been done that needs the Internet."""
        steps = [step for step in self._page.steps if step.how == "online" or step.package]
        installs = any("muster_" in line for step in steps for line in step.lines)
        roots = {name: self._t.workshop.root(self._folder, name, not installs) for name in names}
        for step in steps:
            for machine in step.machines:
                if step.package:
                    roots[machine].run("apt-get", "install", "--yes", "--no-install-recommends",
                                       step.package)
                else:
                    roots[machine].run("su", "--login", machine, "--command",
                                       "set -e\n" + "\n".join(step.lines))
        return roots

    def do(self, step):
        where = f"{self._page.name}:{step.line}"
        getattr(self, f"_{step.kind}")(step, where)

    def _type(self, step, where):
        if step.how == "online":
            return
        for machine in step.machines:
            terminal = self._terminal(machine)
            self._end(terminal, where)
            terminal.clear()
            whole = commands(step.lines)
            for number, lines in enumerate(whole, start=1):
                for line in lines:
                    terminal.type(line)
                    terminal.press("Enter")
                if number == len(whole) and step.how == "stays":
                    self._busy.append(terminal)
                    self._look(terminal)
                    continue
                code = terminal.wait_for_prompt(LIMIT)
                fails = number == len(whole) and step.how == "fails"
                self._t.require(code is not None and (code != 0) == fails, "\n".join(
                    [f"{where}: {' '.join(lines)}: code {code}", *terminal.screen()]))

    def _look(self, terminal):
        """Looks at what comes up before going on, as one does: until nothing changes for a second
        and a half, or for six at most, since some of it always changes."""
        changed = end = time.monotonic()
        end += 6
        shown = None
        while time.monotonic() < min(end, changed + 1.5):
            if (now := terminal.screen()) != shown:
                shown, changed = now, time.monotonic()
            time.sleep(0.1)

    def _press(self, step, _):
        terminal = self._terminal(step.machines[0])
        for text, key in step.keys:
            terminal.type(text) if text else terminal.press(key)

    def _see(self, step, where):
        terminal = self._terminal(step.machines[0])
        if self._t.takes and not any(step.lines):
            time.sleep(5)
            shown = "\n".join(line.rstrip() for line in _output(terminal))
            self._page.replace(step, shown.strip("\n").splitlines())
            return
        capture = Capture(step.lines)
        end = time.monotonic() + LIMIT
        while (found := capture.find(_output(terminal))) is None:
            self._t.require(time.monotonic() < end, "\n".join(
                [f"{where}: not seen: {capture.missing(_output(terminal))}", *terminal.screen()]))
            time.sleep(0.1)
        if self._t.takes:
            rest = iter(found)
            self._page.replace(step, [next(rest) if line.strip() else line for line in step.lines])

    def _write(self, step, _):
        self._computers[step.machines[0]].write(step.path, "\n".join(step.lines) + "\n")

    def _carry(self, step, _):
        self._computers[step.machines[0]].take(step.path, self._computers[step.source])

    def _picture(self, step, where):
        computer = self._computers[step.machines[0]]
        pages = re.findall(r"http://127\.0\.0\.1:\d+/\?t=\w+",
                           "\n".join(self._terminal(step.machines[0]).screen()))
        self._t.require(pages, f"{where}: {computer.name}'s terminal shows no address of a page")
        with inside(computer.namespace), Browser((1120, 640)) as browser:
            browser.open(pages[-1])
            browser.wait("document.querySelectorAll('#grid .tile canvas').length > 0"
                         " && [...document.querySelectorAll('#grid .tile canvas')]"
                         ".every((canvas) => canvas.width > 300)", "the videos", LIMIT)
            if step.element:
                browser.click(step.element)
            time.sleep(2)
            if self._t.takes:
                browser.screenshot(os.path.join(GUIDE, step.path))

    def _skip(self, step, where):
        """Nothing is done here."""

    _elsewhere = _example = _skip

    def _terminal(self, machine):
        name, _, number = machine.partition(":")
        return self._computers[name].terminal(int(number or 1))

    def _end(self, terminal, where):
        """Waits for the end of what stayed in a terminal, if anything did."""
        if terminal in self._busy:
            code = terminal.wait_for_prompt(LIMIT)
            self._t.require(code in (0, 130), f"{where}: what was there before ends with {code}")
            self._busy.remove(terminal)

    def leave(self):
        """Ends what still stays, as one leaves: with Ctrl-C."""
        for terminal in self._busy[::-1]:
            if terminal.is_busy:
                terminal.press("C-c")
            self._end(terminal, f"{self._page.name}, at its end")

    def close(self):
        for computer in self._computers.values():
            computer.close()
        stop_terminals(self._socket)
