"""Judges what the laptops with radios have left."""

import json
import sys

from verdicts import Verdicts

NAMES = ("ada", "grace", "matt")

found = Verdicts(sys.argv[1])
radios = [found.text(f"{name}.radio") for name in NAMES]
codes = {name: found.text(f"{name}.code").strip() for name in NAMES}
found.say(
    "the guide's steps make one ad-hoc network",
    all(code == "0" for code in codes.values())
    and all("Joined IBSS" in radio for radio in radios)
    and len({radio.split()[2] for radio in radios}) == 1,
    "; ".join(found.text(f"{name}.steps").strip().replace("\n", ", ") or radio.split("\n")[0]
              for name, radio in zip(NAMES, radios)))

kinds = set()
for name in NAMES:
    for interface in json.loads(found.text(f"{name}.addresses") or "[]"):
        kinds |= {one["scope"] for one in interface.get("addr_info", [])}
found.say("nobody has an address but that of the link", kinds == {"link"}, ", ".join(sorted(kinds)))

ids = {name: event["id"] for name in NAMES for event in found.of(name, "ready")}
for name in NAMES:
    seen = {event["member"] for event in found.of(name, "media.first-frame")}
    found.say(f"{name} sees the others over the radio",
              len(ids) == 3 and seen == set(ids.values()) - {ids[name]}, f"{len(seen)} of 2")
direct = [event["via"] is None for name in NAMES for event in found.of(name, "link.up")]
found.say("the links are direct", direct and all(direct))
found.end()
