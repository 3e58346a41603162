"""Interop checks: real `muster` processes beside the Python peer, on loopback.

    python3 Tests/InteropTests/run.py --muster .build/release/muster [--only NAME]...

What a check is, and how a process is started, waited for and ended, is shared with the lab checks.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, os.pardir, "LabTests"))

import check  # noqa: E402
import checks_call  # noqa: E402, F401
import checks_created  # noqa: E402, F401
import checks_gossip  # noqa: E402, F401
import checks_leave  # noqa: E402, F401
import checks_link  # noqa: E402, F401
import checks_media  # noqa: E402, F401
import checks_relay  # noqa: E402, F401
import checks_vectors  # noqa: E402, F401
from context import InteropContext  # noqa: E402
from footage import Footage  # noqa: E402
from node import Unexpected  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="Checks of muster with another implementation.")
    parser.add_argument("--muster", default=".build/release/muster", help="the command to check")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="only checks with this in their names; may be repeated")
    parser.add_argument("--list", action="store_true", help="name the checks and end")
    parser.add_argument("--keep", action="store_true", help="keep the temporary files of failures")
    options = parser.parse_args()
    chosen = [one for one in check.registered()
              if not options.only or any(part in one.name for part in options.only)]
    if options.list:
        print("\n".join(one.name for one in chosen))
        return 0
    muster = os.path.abspath(options.muster)
    if not os.access(muster, os.X_OK):
        print(f"there is no {options.muster}: build it first", file=sys.stderr)
        return 2
    # An end by signal unwinds, so that processes are ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix="muster-interop-")
    try:
        return Runner(muster, folder, options.keep).run(chosen)
    finally:
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


class Runner:
    def __init__(self, muster, folder, keep):
        self._muster, self._folder, self._keep = muster, folder, keep
        self._footage = Footage(os.path.join(folder, "footage"))
        self._counts = {"pass": 0, "FAIL": 0, "skip": 0}

    def run(self, chosen):
        started = time.monotonic()
        for one in chosen:
            if "ffmpeg" in one.needs and not shutil.which("ffmpeg"):
                self._report("skip", one, ["no ffmpeg"], [], 0)
            else:
                self._report(*self._attempt(one))
        print(f"interop checks took {time.monotonic() - started:.0f} s")
        print(f"{self._counts['pass']} passed, {self._counts['FAIL']} failed,"
              f" {self._counts['skip']} skipped", flush=True)
        return 1 if self._counts["FAIL"] else 0

    def _attempt(self, one):
        """(outcome, check, findings, words for a person who looks into it, seconds)"""
        folder = os.path.join(self._folder, one.name[:60])
        context = InteropContext(self._muster, folder, self._footage)
        started, words = time.monotonic(), []
        try:
            one.function(context)
            context.all_well()
        except check.Skip as reason:
            return "skip", one, [str(reason)], [], time.monotonic() - started
        except Unexpected as error:
            context.wrong.append(str(error))
        except Exception as error:  # a fault of the check itself is a failure too
            context.wrong.append(f"{type(error).__name__}: {error}")
            words += traceback.format_exc().splitlines()[-8:]
        finally:
            taken = time.monotonic() - started
            if context.wrong:
                words += [line for node in context.nodes for line in node.last_words()]
            context.close(keep=bool(context.wrong) and self._keep)
        if context.wrong:
            return "FAIL", one, context.wrong, words, taken
        return "pass", one, context.figures, [], taken

    def _report(self, outcome, one, findings, words, taken):
        self._counts[outcome] += 1
        details = "; ".join(findings)
        print(f"{outcome}  {one.name} [{taken:.1f} s]{': ' if details else ''}{details}",
              flush=True)
        for line in words:
            print(f"      {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
