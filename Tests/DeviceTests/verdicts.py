"""What the nodes in a virtual machine have left, and the judgements on it."""

import glob
import json
import os
import sys


class Verdicts:
    """Of the folder in which the machine left what its nodes said."""

    def __init__(self, out):
        self.out = out
        self._counts = {"pass": 0, "FAIL": 0}

    def say(self, claim, holds, figures=""):
        word = "pass" if holds else "FAIL"
        self._counts[word] += 1
        print(f"{word}  {claim}{': ' if figures else ''}{figures}")

    def text(self, name):
        path = os.path.join(self.out, name)
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def of(self, name, kind, after=0):
        """A node's events of a kind, or those after its first lines."""
        found = []
        for line in self.text(name + ".json").splitlines()[after:]:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # an incomplete last line of a node that was killed
            if event["event"] == kind:
                found.append(event)
        return found

    def end(self):
        """Prints the totals and, of a failure, what the nodes said; ends this process."""
        if self._counts["FAIL"]:
            for path in sorted(glob.glob(os.path.join(self.out, "*.json"))):
                name = os.path.basename(path)[:-5]
                print(f"-- {name}: {self.text(name + '.err')[:500]}")
                print("\n".join(row[:200] for row in self.text(name + ".json").splitlines()[:6]))
            print(self.text("guest.log")[-800:])
        print(f"{self._counts['pass']} passed, {self._counts['FAIL']} failed, 0 skipped")
        sys.exit(1 if self._counts["FAIL"] else 0)
