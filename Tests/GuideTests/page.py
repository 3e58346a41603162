"""A page of the guide as steps that can be followed.

Comments, which readers do not see, say what is done with the block or the picture after them:

    on ada                           the block is typed into the terminal of the machine `ada`
    on ada and grace                 first into that of the one, then into that of the other
    on ada, fails                    its last command ends with another code than 0
    on ada, stays                    its last command does not end by itself
    on ada, online                   it needs the Internet, and comes before all that does not
    on dora, with PACKAGE            its machine has this Debian package as well, from the beginning
    seen on ada                      the block is what its terminal shows; see `Capture`
    file PATH on ada                 the block is written into this file
    picture of ada's page            the picture after it is taken of the call page
    picture of ada's page, #people   the same, after a click on the element
    followed in a virtual machine: KIND
                                     the block is left out here; `Tests/DeviceTests` follows it
    not followed: REASON             the block is left out
    example                          the block is nothing that is done

Some comments are steps by themselves:

    press c on ada                   keys, by tmux's names; "a text" is typed as it stands
    carry FILE from ada to grace     on a memory stick, from home to home

A machine has further terminals, `ada:2` and so on.
"""

import dataclasses
import re

_COMMENT = re.compile(r"<!-- (.*) -->$")
_FENCE = re.compile(r"```(\w*)$")
# Its description may take several lines.
_PICTURE = re.compile(r".*\]\((\S+)\)$")
_DIRECTIVES = [
    ("type", re.compile(r"on (?P<machines>[\w: ]+?)(?:, (?P<how>fails|stays|online)"
                       r"|, with (?P<package>[\w-]+))?$")),
    ("see", re.compile(r"seen on (?P<machines>[\w:]+)$")),
    ("write", re.compile(r"file (?P<path>\S+) on (?P<machines>[\w:]+)$")),
    ("picture", re.compile(r"picture of (?P<machines>\w+)'s page(?:, (?P<element>.+))?$")),
    ("press", re.compile(r"press (?P<keys>.+) on (?P<machines>[\w:]+)$")),
    ("carry", re.compile(r"carry (?P<path>\S+) from (?P<source>\w+) to (?P<machines>\w+)$")),
    ("elsewhere", re.compile(r"followed in a virtual machine: (?P<reason>.+)$")),
    ("skip", re.compile(r"not followed: (?P<reason>.+)$")),
    ("example", re.compile(r"example$")),
]
_KEY = re.compile(r'"([^"]*)"|([\w-]+)')


class Wrong(Exception):
    """The page cannot be followed as it is written."""


@dataclasses.dataclass
class Step:
    """What is done, and the lines of the block, from `first` on in the page."""

    kind: str
    line: int
    first: int = 0
    lines: list = dataclasses.field(default_factory=list)
    machines: list = dataclasses.field(default_factory=list)
    how: str = None
    package: str = None
    path: str = None
    source: str = None
    element: str = None
    reason: str = None
    keys: list = dataclasses.field(default_factory=list)


class Page:
    """Its text and its steps; `name` says which it is in errors."""

    def __init__(self, name, text):
        self.name = name
        self.lines = text.splitlines()
        self.steps = list(self._read())

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    def replace(self, step, lines):
        """Puts other lines into a step's block."""
        grown = len(lines) - len(step.lines)
        self.lines[step.first:step.first + len(step.lines)] = lines
        step.lines = list(lines)
        for later in self.steps:
            if later.first > step.first:
                later.first += grown

    def _read(self):
        """The steps in the order of the page."""
        open_step = fence = None
        for number, line in enumerate(self.lines):
            if fence is not None:
                if line == "```":
                    fence.lines = self.lines[fence.first:number]
                    yield fence
                    fence = None
            elif comment := _COMMENT.match(line):
                self._demand(open_step is None, number, "nothing follows the comment before")
                step = self._step(comment[1], number)
                if step.kind in ("press", "carry"):
                    yield step
                else:
                    open_step = step
            elif _FENCE.match(line):
                self._demand(open_step and open_step.kind != "picture", number,
                             "no comment says what is done with this block")
                fence, open_step = open_step, None
                fence.first = number + 1
            elif line and open_step:
                self._demand(open_step.kind == "picture", number,
                             "the comment before belongs to a block or a picture")
                if picture := _PICTURE.match(line):
                    open_step.path = picture[1]
                    yield open_step
                    open_step = None
        self._demand(fence is None and open_step is None, len(self.lines), "an open block")

    def _step(self, text, number):
        for kind, form in _DIRECTIVES:
            if found := form.match(text):
                fields = {key: value for key, value in found.groupdict().items() if value}
                if "machines" in fields:
                    fields["machines"] = fields["machines"].split(" and ")
                if "keys" in fields:
                    fields["keys"] = _KEY.findall(fields["keys"])
                return Step(kind, number + 1, **fields)
        raise Wrong(f"{self.name}:{number + 1}: what is '{text}'?")

    def _demand(self, holds, number, what):
        if not holds:
            raise Wrong(f"{self.name}:{number + 1}: {what}")


class Capture:
    """What a terminal is expected to show: these lines, one below the other.

    Numbers, ids, addresses, tokens, who speaks and the width of gaps may differ. `…` stands for any
    lines, and at the end of a line for any words.
    """

    def __init__(self, lines):
        self._wanted = [line for line in lines if line.strip()]

    def find(self, screen):
        """What the screen shows in the place of each wanted line, or None if one is missing."""
        found, rest = [], [line.rstrip() for line in screen if line.strip()]
        free = True
        for wanted in self._wanted:
            if wanted.strip() == "…":
                found.append(wanted)
                free = True
                continue
            place = next((index for index, line in enumerate(rest) if _alike(wanted, line)), None)
            if place is None or (place > 0 and not free):
                return None
            line = rest[place]
            if wanted.rstrip().endswith(" …"):
                line = wanted
            found.append(line)
            rest, free = rest[place + 1:], False
        return found

    def missing(self, screen):
        """The first wanted lines that the screen does not show, for a person."""
        for count in range(1, len(self._wanted) + 1):
            if Capture(self._wanted[:count]).find(screen) is None:
                return self._wanted[count - 1]
        return None


def _alike(wanted, line):
    wanted, line = _general(wanted), _general(line)
    return line.startswith(wanted[:-1].rstrip()) if wanted.endswith("…") else line == wanted


def _general(line):
    """A line without what differs from one run to the next."""
    for form, instead in _PASSING:
        line = form.sub(instead, line)
    return line.strip()


_PASSING = [
    (re.compile(r"muster://\S+"), "muster://#"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"), "#"),
    (re.compile(r"\d+(?:[.,]\d+)*"), "#"),
    (re.compile(r"active speaker|speaking|quiet"), "speaking"),
    (re.compile(r"\s+"), " "),
]
