"""Lab checks: real `muster` processes on loopback and in network namespaces.

    python3 Tests/LabTests/run.py --muster .build/release/muster [--only NAME]... [--long]
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True

import check  # noqa: E402
import checks_call  # noqa: E402, F401
import checks_command  # noqa: E402, F401
import checks_detection  # noqa: E402, F401
import checks_dnssd  # noqa: E402, F401
import checks_doctor  # noqa: E402, F401
import checks_dht  # noqa: E402, F401
import checks_endings  # noqa: E402, F401
import checks_hardship  # noqa: E402, F401
import checks_media  # noqa: E402, F401
import checks_mesh  # noqa: E402, F401
import checks_nat  # noqa: E402, F401
import checks_ports  # noqa: E402, F401
import checks_relay  # noqa: E402, F401
import checks_rendezvous  # noqa: E402, F401
import checks_rights  # noqa: E402, F401
import checks_roaming  # noqa: E402, F401
import checks_silence  # noqa: E402, F401
from dht import reason_against_dht  # noqa: E402
from media import Footage  # noqa: E402
from netns import reason_against_namespaces  # noqa: E402
from node import Unexpected  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="Checks of real muster processes.")
    parser.add_argument("--muster", default=".build/release/muster", help="the command to check")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="only checks with this in their names; may be repeated")
    parser.add_argument("--long", action="store_true", help="longer calls, ten times the junk")
    parser.add_argument("--list", action="store_true", help="name the checks and end")
    parser.add_argument("--keep", action="store_true", help="keep the temporary files of failures")
    options = parser.parse_args()
    chosen = [
        one for one in check.registered()
        if not options.only or any(part in one.name for part in options.only)
    ]
    if options.list:
        print("\n".join(one.name for one in chosen))
        return 0
    muster = os.path.abspath(options.muster)
    if not os.access(muster, os.X_OK):
        print(f"there is no {options.muster}: build it first", file=sys.stderr)
        return 2
    # An end by signal unwinds, so that namespaces and processes are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix="muster-lab-")
    try:
        return Runner(muster, folder, options).run(chosen)
    finally:
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


class Runner:
    def __init__(self, muster, folder, options):
        self.muster = muster
        self.folder = folder
        self.options = options
        self.footage = Footage(os.path.join(folder, "footage"))
        self.counts = {"pass": 0, "FAIL": 0, "skip": 0}
        self.lacking = {
            "namespaces": reason_against_namespaces(),
            "ffmpeg": None if shutil.which("ffmpeg") else "no ffmpeg",
            "dht": reason_against_dht(muster, folder),
        }

    def run(self, chosen):
        started = time.monotonic()
        for one in chosen:
            self.run_one(one)
        print(f"lab checks took {time.monotonic() - started:.0f} s")
        print(f"{self.counts['pass']} passed, {self.counts['FAIL']} failed,"
              f" {self.counts['skip']} skipped", flush=True)
        return 1 if self.counts["FAIL"] else 0

    def run_one(self, one):
        lacking = [reason for need in one.needs if (reason := self.lacking[need])]
        if lacking:
            self.report("skip", one, lacking, [], 0)
            return
        outcome = self.attempt(one, 1)
        busy = os.getloadavg()[0]
        if outcome[0] == "FAIL" and one.timed and busy > (os.cpu_count() or 1):
            print(f"      {one.name}: once more, the load is {busy:.1f}: {'; '.join(outcome[1])}")
            outcome = self.attempt(one, 2)
        self.report(*outcome[:1], one, *outcome[1:])

    def attempt(self, one, number):
        folder = os.path.join(self.folder, f"{one.name[:60]}.{number}")
        context = check.Context(self.muster, folder, self.options.long, self.footage)
        started = time.monotonic()
        words = []
        try:
            one.function(context)
            context.all_well()
        except check.Skip as reason:
            return "skip", [str(reason)], [], time.monotonic() - started
        except Unexpected as error:
            context.wrong.append(str(error))
        except Exception as error:  # a fault of the check itself is a failure too
            context.wrong.append(f"{type(error).__name__}: {error}")
            words += traceback.format_exc().splitlines()[-8:]
        finally:
            taken = time.monotonic() - started
            if context.wrong:
                words += context.tables
                words += [line for node in context.nodes for line in node.last_words()]
            context.close(keep=bool(context.wrong) and self.options.keep)
        if context.wrong:
            return "FAIL", context.wrong + ["figures: " + ", ".join(context.figures)], words, taken
        return "pass", context.figures, context.tables, taken

    def report(self, outcome, one, reported, words, taken):
        self.counts[outcome] += 1
        details = "; ".join(reported)
        print(f"{outcome}  {one.name} [{taken:.1f} s]{': ' if details else ''}{details}",
              flush=True)
        for line in words:
            print(f"      {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
