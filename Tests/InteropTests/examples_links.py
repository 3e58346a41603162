"""Computes the examples of identities, discovery, handshakes, sessions and rendezvous."""

from examples import (
    BERTS_BOOT, BERTS_INDEX, BOOT, INDEX, NAME, OUTSIDE, OUTSIDE_6, PASSPHRASE, PERIOD)
from examples_channel import subscription_and_ping
from peer import channel, feedback, handshake, rendezvous, session
from peer.announcement import Announcement, Challenge
from peer.crypto import link_key
from peer.handshake import Initiation, ReceivedInitiation
from peer.paths import CHALLENGE, CLOSE, PATH, RESPONSE
from peer.relay import FORWARD, RELAYED
from peer.verification import verification_code


def identities(given):
    code = verification_code(given.anna.id, given.bert.id, given.keys.id)
    return {
        "id-anna": given.anna.id, "x25519-anna": given.anna.link_key,
        "id-bert": given.bert.id, "x25519-bert": link_key(given.bert.id),
        "verification-code": code.encode(),
    }


def channels(given):
    return {
        "name-key": given.keys.secret, "channel-id": given.keys.id,
        "announcement-key": given.keys.announcement_key, "noise-psk": given.keys.noise_psk,
        "passphrase-salt": channel.passphrase_salt(NAME),
        "passphrase-key": channel.secret_from_passphrase(NAME, PASSPHRASE),
    }


def _announcement(given):
    return Announcement(given.anna.id, BOOT, 7, addresses=[OUTSIDE, OUTSIDE_6])


def _sealed_announcement(given):
    return _announcement(given).seal(given.anna, given.keys, given["announcement-nonce"])


def discovery(given):
    echo = bytes(range(0x80, 0x90))
    extended = Announcement(given.anna.id, BOOT, 9, addresses=[OUTSIDE],
                            extensions={240: bytes([1, 2, 3])})
    answer = Announcement(given.anna.id, BOOT, 8, echo)
    challenge = Challenge(given.anna.id, BOOT, 7, echo)

    def signature(made):
        return Announcement.open(given.keys, made.seal(given.anna, given.keys)).signature
    return {
        "announcement": _announcement(given).encode(),
        "announcement-datagram": _sealed_announcement(given),
        "announcement-signature": signature(_announcement(given)),
        "announcement-extended": extended.encode(),
        "announcement-extended-signature": signature(extended),
        "challenge": challenge.encode(),
        "challenge-datagram": challenge.seal(given.keys, given["challenge-nonce"]),
        "answer": answer.encode(), "answer-signature": signature(answer),
    }


def _initiation(given, cookie=None):
    payload = handshake.initiation_payload(given.anna.id, BOOT, 1, BERTS_BOOT)
    return Initiation(given.anna, given.keys, given.bert.id, INDEX, payload,
                      given["ephemeral-anna"], cookie)


def handshakes(given):
    begun = _initiation(given)
    received = ReceivedInitiation(given.bert, given.keys, begun.message)
    payload = handshake.response_payload(BERTS_BOOT)
    response, berts = received.respond(BERTS_INDEX, payload, given["ephemeral-bert"])
    annas = begun.read_response(response)
    reply = handshake.cookie_reply(
        given.bert, given.keys, begun.message, given["cookie"], given["cookie-nonce"])
    return {
        "prologue": handshake.prologue(given.keys), "initiation-payload": received.payload,
        "initiation-mac-key": given.keys.initiation_mac_key(given.bert.link_key),
        "initiation": begun.message, "response-payload": annas.payload,
        "response-mac-key": given.keys.response_mac_key(given.bert.link_key),
        "response": response, "session-key-anna": annas.send_key,
        "session-key-bert": berts.send_key,
        "cookie-key": given.keys.cookie_key(given.bert.link_key), "cookie-reply": reply,
        "initiation-mac2": _initiation(given, begun.read_cookie(reply)).message[-16:],
    }


def data(given):
    begun = _initiation(given)
    received = ReceivedInitiation(given.bert, given.keys, begun.message)
    response, _ = received.respond(
        BERTS_INDEX, handshake.response_payload(BERTS_BOOT), given["ephemeral-bert"])
    link = session.Session(given.keys, begun.read_response(response), INDEX, True, 0, 0)
    token = bytes(range(0x21, 0x29))
    return {
        "data-keepalive": link.seal(b"\0"), "data-control": link.seal(subscription_and_ping()),
        "path-challenge": bytes([PATH, CHALLENGE]) + token,
        "path-response": bytes([PATH, RESPONSE]) + token, "path-close": bytes([PATH, CLOSE]),
        "relay-forward": bytes([RELAYED, FORWARD]) + given.bert.id[:8]
        + bytes([session.DATA]) + BERTS_INDEX + bytes(8),
        "feedback": feedback.encode(INDEX, 1000, 4_000_000, [400, 380, None, 9000, 1]),
    }


def rendezvous_and_dht(given):
    token, cookie = bytes(range(0xA0, 0xA8)), bytes(range(0xB0, 0xC0))
    slot, other_slot = bytes(range(0xC8, 0xD0)), bytes(range(0xD8, 0xE0))
    tag, announcement = given.keys.rendezvous_tag(PERIOD), _sealed_announcement(given)
    return {
        "rendezvous-tag": tag.id,
        "rendezvous-hello": rendezvous.hello(token),
        "rendezvous-cookie": rendezvous.cookie_reply(token, cookie, PERIOD, 512, OUTSIDE),
        "rendezvous-registration": rendezvous.registration(
            slot, cookie, PERIOD, tag, True, announcement),
        "rendezvous-records": rendezvous.records(other_slot, [(OUTSIDE, announcement)]),
        "dht-tag": given.keys.dht_tag(19_675),
    }


PARTS = (identities, channels, discovery, handshakes, data, rendezvous_and_dht)
