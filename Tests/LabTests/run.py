"""Lab checks: real `muster` processes on loopback and in network namespaces.

    python3 Tests/LabTests/run.py --muster .build/release/muster [--only NAME]... [--long]
"""

import argparse
import os
import shutil
import sys

sys.dont_write_bytecode = True

import check  # noqa: E402
import checks_access  # noqa: E402, F401
import checks_alone  # noqa: E402, F401
import checks_call  # noqa: E402, F401
import checks_command  # noqa: E402, F401
import checks_detection  # noqa: E402, F401
import checks_dnssd  # noqa: E402, F401
import checks_doctor  # noqa: E402, F401
import checks_dht  # noqa: E402, F401
import checks_endings  # noqa: E402, F401
import checks_gate  # noqa: E402, F401
import checks_hardship  # noqa: E402, F401
import checks_links  # noqa: E402, F401
import checks_media  # noqa: E402, F401
import checks_merge  # noqa: E402, F401
import checks_mesh  # noqa: E402, F401
import checks_narrow  # noqa: E402, F401
import checks_nat  # noqa: E402, F401
import checks_ports  # noqa: E402, F401
import checks_readme  # noqa: E402, F401
import checks_relay  # noqa: E402, F401
import checks_rendezvous  # noqa: E402, F401
import checks_returns  # noqa: E402, F401
import checks_rights  # noqa: E402, F401
import checks_roaming  # noqa: E402, F401
import checks_settings  # noqa: E402, F401
import checks_silence  # noqa: E402, F401
import checks_speakers  # noqa: E402, F401
import checks_start  # noqa: E402, F401
import runner  # noqa: E402
from dht import reason_against_dht  # noqa: E402
from media import Footage  # noqa: E402
from netns import reason_against_namespaces  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="Checks of real muster processes.")
    runner.add_options(parser)
    parser.add_argument("--long", action="store_true", help="longer calls, ten times the junk")
    return runner.main("lab", parser, prepare)


def prepare(muster, folder, options):
    footage = Footage(os.path.join(folder, "footage"))
    lacking = {
        "namespaces": reason_against_namespaces(),
        "ffmpeg": None if shutil.which("ffmpeg") else "no ffmpeg",
        "dht": reason_against_dht(muster, folder),
    }
    return lacking, lambda place: check.Context(
        muster, place, footage, is_long=options.long, judges_times=not options.gate)


if __name__ == "__main__":
    sys.exit(main())
