"""The guide's pages, and the reader that follows them, without any machine."""

import glob
import os
import re

from check import check
from page import Capture, Page, Wrong
from terminal import commands

_TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
_DEVICES = os.path.join(_TOP, "Tests", "DeviceTests")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_SHOWN = ["  camp  call ongoing since 15:22, 2 participants", "", "  ● Ada     leads it    you",
          "  ● Grace   in call     31 kbit/s, 0 ms", "", "  Grace is here"]


@check(gate=True)
def every_step_of_the_guide_says_how_it_is_followed(t):
    names = []
    for path in sorted(glob.glob(os.path.join(_TOP, "docs/guide/*.md"))):
        with open(path, encoding="utf-8") as file:
            page = Page(os.path.basename(path), file.read())
        names.append(page.name)
        for step in page.steps:
            if step.kind == "type":
                t.expect(commands(step.lines), f"{page.name}:{step.line}: no command")
            if step.kind == "see":
                t.expect(any(step.lines), f"{page.name}:{step.line}: nothing is seen")
            if step.kind == "elsewhere":
                t.expect(os.path.exists(os.path.join(_DEVICES, step.reason, "guest")),
                         f"{page.name}:{step.line}: there is no such virtual machine")
        seen = {machine for step in page.steps if step.kind == "see" for machine in step.machines}
        typed = {machine for step in page.steps if step.kind == "type" for machine in step.machines}
        t.expect(seen <= typed, f"{page.name}: nothing is typed on {sorted(seen - typed)}")
    t.figure("pages", len(names), at_least=8)


@check(gate=True)
def every_link_of_the_documents_leads_somewhere(t):
    paths = [path for pattern in ("*.md", "docs/*.md", "docs/guide/*.md", "docs/decisions/*.md")
             for path in glob.glob(os.path.join(_TOP, pattern))]
    links = 0
    for path in paths:
        for link in _LINK.findall(_prose(path)):
            if re.match(r"[a-z]+:", link):
                continue
            links += 1
            target, _, anchor = link.partition("#")
            there = os.path.join(os.path.dirname(path), target) if target else path
            where = f"{os.path.relpath(path, _TOP)}: {link}"
            t.expect(os.path.exists(there), f"{where}: there is no such file")
            if anchor and there.endswith(".md") and os.path.exists(there):
                t.expect(anchor in _anchors(there), f"{where}: there is no such heading")
    t.figure("links", links, at_least=100)


@check(gate=True)
def a_capture_is_found_only_where_it_is(t):
    def found(*lines):
        return Capture(list(lines)).find(_SHOWN) is not None

    t.expect(found(*_SHOWN), "as it is")
    t.expect(found("  camp  call ongoing since 09:01, 2 participants",
                   "  ● Ada        leads it    you"), "another time, another width")
    t.expect(found("…", "  ● Grace   in call     640x360@30 …") is False, "another figure's form")
    t.expect(found("…", "  ● Grace   in call …", "  Grace is here"), "any words at an end")
    t.expect(found("  camp …", "…", "  Grace is here"), "any lines between")
    t.expect(not found("  camp …", "  Grace is here"), "a line between that is not named")
    t.expect(not found("  Grace is here", "  camp …"), "another order")
    t.expect(not found("  ● Ada     in call     you"), "another state")
    t.expect(not found("  ● Grace   leads it …"), "another state, and any words")
    t.expect(Capture(["  camp …", "…", "  Matt is here"]).missing(_SHOWN) == "  Matt is here",
             "it says what is missing")


@check(gate=True)
def a_page_that_cannot_be_followed_is_refused(t):
    block = "```sh\nmuster\n```"
    for text, what in ((block, "a block without a comment"), ("<!-- on ada -->\ntext", "no block"),
                       ("<!-- near ada -->\n" + block, "a comment of another form"),
                       ("<!-- on ada -->\n<!-- on ada -->\n" + block, "a comment too many"),
                       ("<!-- on ada -->\n```sh\nmuster", "a block without an end"),
                       ("<!-- picture of ada's page -->\n" + block, "no picture"),
                       ("<!-- on ada -->", "an end after a comment")):
        try:
            Page("page", text)
        except Wrong:
            continue
        t.expect(False, f"{what} is let through")
    page = Page(
        "page", "<!-- on ada and grace:2, stays -->\n\n" + block + "\n<!-- press c on ada -->")
    t.expect([step.kind for step in page.steps] == ["type", "press"], "two steps")
    t.expect(page.steps[0].machines == ["ada", "grace:2"] and page.steps[0].how == "stays",
             f"their machines: {page.steps[0]}")
    t.expect(commands(["a \\", "  b", "# c", "cat <<E", "d", "E", "e |", "  f"])
             == [["a \\", "  b"], ["cat <<E", "d", "E"], ["e |", "  f"]], "whole commands")


def _prose(path):
    """A document's text without its blocks and code."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def _anchors(path):
    """Its headings as they are linked to."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.MULTILINE | re.DOTALL)
    made = {}
    for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        anchor = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        made[anchor] = made.get(anchor, -1) + 1
    return {f"{anchor}-{number}" if number else anchor
            for anchor, count in made.items() for number in range(count + 1)}
