"""Follows the guide, docs/guide, step by step: each page on fresh Debians of its own.

    python3 Tests/GuideTests/run.py [--only PAGE]... [--take]

What the pages show has to be what the readers' terminals show. `--take` writes what they show into
the pages instead, and takes their pictures anew.
"""

import argparse
import glob
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for beside in ("LabTests", "PackageTests", "PageTests"):
    sys.path.append(os.path.join(HERE, os.pardir, beside))

import checks_guide  # noqa: E402, F401
import checks_pages  # noqa: E402, F401
import runner  # noqa: E402
from check import Context  # noqa: E402
from debian_root import reason_against_roots  # noqa: E402
from machines import Workshop  # noqa: E402
from nat import reason_against_nat  # noqa: E402
from netns import reason_against_namespaces  # noqa: E402
from pictures import SPEECH, cameras  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="Follows the guide.")
    runner.add_options(parser)
    parser.add_argument("--package", help="the Debian package (default: the one in .build-deb)")
    parser.add_argument("--take", action="store_true",
                        help="write what is seen into the pages, and take their pictures")
    return runner.main("guide", parser, prepare)


def prepare(muster, folder, options):
    made = glob.glob(".build-deb/muster_*.deb")
    package = options.package or (max(made, key=os.path.getmtime) if made else None)
    lacking = {tool: None if shutil.which(tool) else f"no {tool}"
               for tool in ("tmux", "ffmpeg", "chromium", "systemd-nspawn")}
    lacking["package"] = None if package else "there is no package: make deb"
    lacking["root"] = reason_against_roots() or reason_against_namespaces()
    lacking["nft"] = reason_against_nat()
    workshop = package and Workshop(
        os.path.join(folder, "workshop"), os.path.abspath(package), cameras(folder), SPEECH)

    def context(place):
        made = Context(muster, place, None)
        made.workshop, made.takes = workshop, options.take
        return made

    return lacking, context


if __name__ == "__main__":
    sys.exit(main())
