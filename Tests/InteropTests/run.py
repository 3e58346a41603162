"""Interop checks: real `muster` processes beside the Python peer, on loopback.

    python3 Tests/InteropTests/run.py --muster .build/release/muster [--only NAME]...

The lab checks share the runner, the definition of a check and the handling of processes.
"""

import argparse
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, os.pardir, "LabTests"))

import checks_call  # noqa: E402, F401
import checks_created  # noqa: E402, F401
import checks_gossip  # noqa: E402, F401
import checks_guests  # noqa: E402, F401
import checks_leave  # noqa: E402, F401
import checks_link  # noqa: E402, F401
import checks_media  # noqa: E402, F401
import checks_relay  # noqa: E402, F401
import checks_streams  # noqa: E402, F401
import checks_vectors  # noqa: E402, F401
import runner  # noqa: E402
from context import InteropContext  # noqa: E402
from footage import Footage  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="Checks of muster with another implementation.")
    runner.add_options(parser)
    parser.add_argument("--long", action="store_true", help="ten times the hostile entries")
    return runner.main("interop", parser, prepare)


def prepare(muster, folder, options):
    footage = Footage(os.path.join(folder, "footage"))
    lacking = {"ffmpeg": None if shutil.which("ffmpeg") else "no ffmpeg"}
    return lacking, lambda place: InteropContext(
        muster, place, footage, is_long=options.long)


if __name__ == "__main__":
    sys.exit(main())
