"""Prints the steps of the guide that a virtual machine follows.

    block.py KIND

Those after a comment `followed in a virtual machine: KIND`, in all pages.
"""

import glob
import os
import sys

from page import Page

_GUIDE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "docs", "guide")


def main():
    lines = []
    for path in sorted(glob.glob(os.path.join(_GUIDE, "*.md"))):
        with open(path, encoding="utf-8") as file:
            page = Page(os.path.basename(path), file.read())
        lines += [line for step in page.steps if step.kind == "elsewhere"
                  and step.reason == sys.argv[1] for line in step.lines]
    print("\n".join(lines))
    return 0 if lines else 1


if __name__ == "__main__":
    sys.exit(main())
