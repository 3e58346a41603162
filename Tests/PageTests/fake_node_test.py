#!/usr/bin/env python3
"""Checks the page's files in a real browser, beside a stand-in for the node: needs no build.

    fake_node_test.py [--browser chromium|firefox] [--only CHECK...] [--folder FOLDER]

Prints one line for each check. FOLDER has other files of the page than those of this tree.
"""

import argparse
import shutil
import sys
import time

import layout_checks
import state_checks
from devtools import Browser
from fake_node import PAGE, FakeNode, member, room, snapshot
from firefox import Firefox

CHECKS = [
    layout_checks.check_tiles, layout_checks.check_resized, layout_checks.check_narrow,
    state_checks.check_unread, state_checks.check_drafts, state_checks.check_last_frame,
    state_checks.check_removal, state_checks.check_leaving, state_checks.check_silence,
    state_checks.check_bars,
]
BROWSERS = {"chromium": (Browser, ["chromium"]), "firefox": (Firefox, ["firefox-esr", "firefox"])}


def name(check):
    return check.__doc__.strip().split("\n")[0].rstrip(".").lower()


def perform(check, browser, node):
    """Whether the check passes, on a page that has just been opened."""
    node.show(snapshot(room("kitchen", [member(1)])))
    browser.resize(1280, 720)
    browser.open(node.url)
    started = time.monotonic()
    try:
        browser.wait("document.body?.dataset.view === 'call'", "the page")
        figures = check(browser, node)
        problems = browser.problems()
        assert not problems, f"errors in the page: {problems}"
        reason = None
    except (AssertionError, RuntimeError, TimeoutError) as error:
        reason = str(error)
    seconds = time.monotonic() - started
    print(f"{'FAIL' if reason else 'pass'}  {name(check)} [{seconds:.1f} s]")
    details = reason or figures
    if details:
        print(f"      {details}")
    node.is_stopped = False
    return reason is None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--browser", choices=BROWSERS, default="chromium")
    parser.add_argument("--only", action="append", default=[], help="the name of a check")
    parser.add_argument("--folder", default=PAGE)
    options = parser.parse_args()
    chosen = [check for check in CHECKS if not options.only or name(check) in options.only]
    driver, binaries = BROWSERS[options.browser]
    binary = next(filter(None, map(shutil.which, binaries)), None)
    if not binary:
        print(f"skip  the page beside a stand-in: {options.browser} is not installed")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    with FakeNode(options.folder) as node, driver(binary=binary) as browser:
        passed = sum(perform(check, browser, node) for check in chosen)
    print(f"{passed} passed, {len(chosen) - passed} failed, 0 skipped")
    return 0 if passed == len(chosen) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
