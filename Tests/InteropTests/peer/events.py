"""Events as one JSON object a line on standard output, as `muster join --json` writes them."""

import json
import sys
import time

_started = time.monotonic()


def short(node_id):
    """The form in which people and scripts see a node id."""
    return node_id[:8].hex()


def emit(event, **fields):
    line = {"event": event, "t": round(time.monotonic() - _started, 3)}
    line.update({key: _plain(value) for key, value in fields.items()})
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _plain(value):
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, (bool, int, float, str, dict)):
        return value
    return str(value)
