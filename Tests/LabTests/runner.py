"""Runs registered checks against a `muster` command: options, outcomes and totals."""

import argparse
import concurrent.futures
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

import check
from node import Unexpected


def add_options(parser):
    """Adds the options that all runs of checks have."""
    parser.add_argument("--muster", default=".build/release/muster", help="the command to check")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="only checks with this in their names; may be repeated")
    parser.add_argument("--gate", action="store_true", help="only checks that measure no time")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="run up to N checks at a time, and those that measure alone,"
                             " afterwards")
    parser.add_argument("--list", action="store_true", help="name the checks and end")
    parser.add_argument("--keep", action="store_true", help="keep the temporary files of failures")


def main(kind, parser, prepare):
    """Runs the checks that the command line chooses; returns the exit code.

    `kind` names them in messages. `prepare(muster, folder, options)` returns the reason against
    each need of a check, None where the need is met, and a function that makes a context in a
    folder.
    """
    options = parser.parse_args()
    chosen = [
        one for one in check.registered()
        if (one.in_gate or not options.gate)
        and (not options.only or any(part in one.name for part in options.only))
    ]
    if not chosen:
        print(f"there is no {kind} check with such a name: see --list", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(one.name for one in chosen))
        return 0
    muster = os.path.abspath(options.muster)
    if not os.access(muster, os.X_OK):
        print(f"there is no {options.muster}: build it first", file=sys.stderr)
        return 2
    # An end by signal unwinds, so that namespaces and processes are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix=f"muster-{kind}-")
    try:
        runner = _Runner(folder, options.keep, *prepare(muster, folder, options))
        return runner.run(kind, chosen, options.jobs)
    finally:
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


class _Runner:
    def __init__(self, folder, keep, lacking, make_context):
        self._folder, self._keep = folder, keep
        self._lacking, self._make_context = lacking, make_context
        self._counts = {"pass": 0, "FAIL": 0, "skip": 0}
        self._reporting = threading.Lock()
        self._running = []

    def run(self, kind, chosen, jobs):
        started = time.monotonic()
        self._run_all([one for one in chosen if not one.measures], jobs)
        self._run_all([one for one in chosen if one.measures], 1)
        print(f"{kind} checks took {time.monotonic() - started:.0f} s")
        print(f"{self._counts['pass']} passed, {self._counts['FAIL']} failed,"
              f" {self._counts['skip']} skipped", flush=True)
        return 1 if self._counts["FAIL"] else 0

    def _run_all(self, chosen, jobs):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            try:
                for done in [pool.submit(self._run_one, one) for one in chosen]:
                    done.result()
            except BaseException:
                # A check whose nodes have ended ends as well, and removes its namespaces.
                pool.shutdown(wait=False, cancel_futures=True)
                for context in list(self._running):
                    context.is_interrupted = True
                    for node in context.nodes:
                        node.close()
                raise

    def _run_one(self, one):
        lacking = [reason for need in one.needs if (reason := self._lacking[need])]
        if lacking:
            self._report(one, "skip", lacking, [], 0)
            return
        self._report(one, *self._attempt(one))

    def _attempt(self, one):
        """(outcome, findings, lines for a person who looks into it, seconds)"""
        context = self._make_context(os.path.join(self._folder, one.name[:60]))
        self._running.append(context)
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
            context.close(keep=bool(context.wrong) and self._keep)
            self._running.remove(context)
        if context.wrong:
            figures = ["figures: " + ", ".join(context.figures)] if context.figures else []
            return "FAIL", context.wrong + figures, words, taken
        return "pass", context.figures, context.tables, taken

    def _report(self, one, outcome, reported, words, taken):
        details = "; ".join(reported)
        head = f"{outcome}  {one.name} [{taken:.1f} s]{': ' if details else ''}{details}"
        with self._reporting:
            self._counts[outcome] += 1
            print("\n".join([head, *(f"      {line}" for line in words)]), flush=True)
