"""python3 -m peer join CHANNEL: joins a channel, reports events, and takes commands.

Events and commands are JSON lines of the same form as those of `muster join --json`.
"""

import argparse
import json
import os
import sys

from . import feedback
from .address import parse_address
from .attacker import Attacker
from .channel import Channel, secret_from_name, secret_from_passphrase
from .crypto import Identity
from .events import emit
from .invite import Invite
from .media import long_audio, redundancy
from .media.streams import CAMERA, NAMES, SCREEN, VIDEO_STREAMS
from .node import Node, Settings
from .subscription import ANY_RATE, Request, Subscription


def arguments():
    parser = argparse.ArgumentParser(prog="python3 -m peer")
    parser.add_argument("command", choices=["join"])
    parser.add_argument("channel", nargs="?", help="name of an open channel")
    parser.add_argument("--invite", metavar="URL", help="in place of a name")
    parser.add_argument("--passphrase")
    parser.add_argument("--name", default="Python")
    parser.add_argument("--seed", metavar="HEX", help="32 bytes of the identity; default: random")
    parser.add_argument("--listen", action="append", type=parse_address, metavar="HOST:PORT",
                        help="may be given for IPv4 and for IPv6; default: 127.0.0.1:0")
    parser.add_argument("--peer", action="append", type=parse_address, default=[])
    parser.add_argument("--rendezvous", action="append", type=parse_address, default=[])
    parser.add_argument("--lan", action="store_true", help="announce on the local network")
    parser.add_argument("--call", action="store_true", help="join the call, or start one")
    parser.add_argument("--video", action="append", default=[], metavar="FILE.ivf",
                        help="VP8 to send; one file for each layer, the smallest first")
    parser.add_argument("--share", action="append", default=[], metavar="FILE.ivf",
                        help="the same for a second video stream, the screen")
    parser.add_argument("--audio", metavar="FILE.opus", help="Opus of 20 ms, mono, to send")
    parser.add_argument("--record", metavar="DIR", help="write what is received")
    parser.add_argument("--no-relay", action="store_true", help="pass on nothing for others")
    tests = parser.add_argument_group("for tests")
    tests.add_argument("--demand-cookies", action="store_true",
                       help="answer no initiation without a cookie")
    tests.add_argument("--no-redemption", action="store_true",
                       help="use the key in the invite, and show no right to it")
    tests.add_argument("--no-feedback", action="store_true",
                       help="do without the capability of congestion feedback")
    tests.add_argument("--loss", type=float, default=0, metavar="PERCENT",
                       help="drop so many of the datagrams over 200 bytes, both ways")
    tests.add_argument("--audio-loss", type=float, default=0, metavar="PERCENT",
                       help="drop so many of the audio packets received")
    return parser.parse_intermixed_args()


def settings(options):
    invite = Invite.parse(options.invite) if options.invite else None
    if invite:
        channel = Channel(invite.name, invite.secret, invite.genesis, invite.epoch)
        options.peer += [parse_address(one) for one in invite.peers]
        options.rendezvous += [parse_address(one) for one in invite.rendezvous]
    elif options.passphrase is not None:
        secret = secret_from_passphrase(options.channel, options.passphrase)
        channel = Channel(options.channel, secret)
    else:
        channel = Channel(options.channel, secret_from_name(options.channel))
    files = {CAMERA: options.video, SCREEN: options.share}
    seed = bytes.fromhex(options.seed) if options.seed else os.urandom(32)
    return Settings(
        options.name, channel, Identity(seed), options.listen or [parse_address("127.0.0.1:0")],
        invite=None if options.no_redemption else invite, peers=options.peer,
        rendezvous=options.rendezvous,
        uses_local_network=options.lan, joins_call=options.call,
        videos={stream: paths for stream, paths in files.items() if paths},
        audio=options.audio, record=options.record, relays=not options.no_relay,
        demands_cookies=options.demand_cookies,
        capabilities=(redundancy.CAPABILITY | long_audio.CAPABILITY
                      | (0 if options.no_feedback else feedback.CAPABILITY)),
        lost_part=options.loss / 100, lost_audio=options.audio_loss / 100)


def _subscriptions(command):
    """The subscriptions that a command requests: to one stream, given by name or number, or to all.
    """
    chosen = command.get("stream")
    request = Request(command["width"], command["height"], command.get("rate", ANY_RATE))
    return [Subscription(one, request) for one in VIDEO_STREAMS
            if chosen in (None, one, NAMES.get(one))]


class Commands:
    """Reads commands from standard input."""

    def __init__(self, node):
        self._node = node
        self._unread = b""
        self._hostile = None
        os.set_blocking(sys.stdin.fileno(), False)
        node.loop.when_readable(sys.stdin, self._read)

    def _read(self):
        data = os.read(sys.stdin.fileno(), 65536)
        if not data:
            self._node.loop.forget(sys.stdin)   # the end of its input is not the end of the node
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            try:
                self._do(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                emit("error", message=str(error), command=line.decode(errors="replace"))

    def _attacker(self):
        self._hostile = self._hostile or Attacker(self._node)
        return self._hostile

    def _do(self, command):
        node, what = self._node, command["do"]
        if what in ("start-call", "join-call"):
            node.call.join()
        elif what == "leave-call":
            node.call.leave(command.get("handOver", False))
        elif what == "moderate":
            node.call.moderate(bytes.fromhex(command["member"]), command["actions"])
        elif what == "say":
            receiver = bytes.fromhex(command["to"]) if command.get("to") else None
            node.texts.say(command["text"], receiver)
        elif what == "subscribe":
            node.subscribe(_subscriptions(command))
        elif what == "equivocate":   # for tests: what no member may do
            node.texts.equivocate()
        elif what == "redeem":       # likewise
            self._attacker().redeem(command["count"])
        elif what == "flood":        # likewise
            self._attacker().flood(command["kind"], command["count"])
        elif what == "quit":
            node.leave()
        else:
            raise ValueError(f"there is no command {what!r}")


def main():
    node = Node(settings(arguments()))
    Commands(node)
    node.start()
    try:
        node.loop.run()
    except KeyboardInterrupt:
        node.leave()


main()
