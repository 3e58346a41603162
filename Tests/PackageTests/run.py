"""Checks of what is installed: the files below a prefix, and the Debian package in a fresh Debian.

    python3 Tests/PackageTests/run.py [--muster .build/release/muster] [--only NAME]...

The lab checks share the runner and the definition of a check.
"""

import argparse
import glob
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, os.pardir, "LabTests"))

import checks_debian  # noqa: E402, F401
import checks_install  # noqa: E402, F401
import runner  # noqa: E402
from check import Context  # noqa: E402
from debian_root import reason_against_roots  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="Checks of what is installed.")
    runner.add_options(parser)
    parser.add_argument("--package", help="the Debian package (default: the one in .build-deb)")
    return runner.main("package", parser, prepare)


def prepare(muster, folder, options):
    made = glob.glob(".build-deb/muster_*.deb")
    package = options.package or (max(made, key=os.path.getmtime) if made else None)
    lacking = {tool: None if shutil.which(tool) else f"no {tool}"
               for tool in ("groff", "zsh", "fish", "desktop-file-validate", "systemd-analyze",
                            "systemd-nspawn")}
    lacking["package"] = None if package else "there is no package: make deb"
    lacking["root"] = reason_against_roots()

    def context(place):
        made = Context(muster, place, None)
        made.package = package and os.path.abspath(package)
        return made

    return lacking, context


if __name__ == "__main__":
    sys.exit(main())
