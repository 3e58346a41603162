"""The command line: one-line errors for invalid requests, and sanitised names."""

import os
import socket
import subprocess

from check import check
from node import Node, clean_environment

BAD_USE, FAILURE = 2, 1
# A directory in which not even root can create files.
UNWRITABLE = "/proc/muster-lab"


def _bad_commands(t):
    """(arguments after `join CHANNEL`, exit code); sockets that must stay open come second."""
    busy = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    busy.bind(("127.0.0.1", 0))
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    text = _file(t, "notes.y4m", b"these are notes, no pictures\n")
    sound = _file(t, "notes.wav", b"these are notes, no sound\n")
    ivf = _file(t, "notes.ivf", b"DKIF" + bytes(100))
    empty = _file(t, "empty.y4m", b"")
    missing = os.path.join(t.folder, "missing")
    busy_port, taken_port = busy.getsockname()[1], taken.getsockname()[1]
    bad_use = [
        ["--bogus"], ["--peer", "no port"], ["--peer", "host:99999"], ["--peer", ":"],
        ["--listen", "nonsense"], ["--listen", "127.0.0.1:70000"], ["--interface", "nosuch0"],
        ["--call", "--watch"], ["--video-bitrate", "1"], ["--video-bitrate", "much"],
        ["--uplink", "63"],
        ["--max-video", "big"], ["--view", "99999"], ["--view", "5000", "--no-view"],
        ["--for", "0"], ["--for", "-3"], ["--for", "nan"], ["--log-level", "loud"], ["--name", ""],
        ["--passphrase", "x", "--key-file", text], ["--passphrase", ""],
        ["--video", "test:0x0@0"], ["--video", "test:nonsense"], ["--video", ""], ["second", ""],
        ["one\x1b[31m"],
    ]
    failures = [
        ["--video", missing + ".y4m"], ["--video", missing + ".ivf"], ["--video", text],
        ["--video", ivf], ["--video", empty], ["--video", t.folder],
        ["--video", "camera:/dev/video99"], ["--video", "camera:" + text],
        ["--audio", missing + ".wav"], ["--audio", sound], ["--audio", "mic:nosuchpcm"],
        ["--speaker", "nosuchpcm"], ["--speaker", f"{UNWRITABLE}/out.wav"],
        ["--listen", f"127.0.0.1:{busy_port}"], ["--listen", "203.0.113.9:4711"],
        ["--view", str(taken_port)], ["--data", UNWRITABLE], ["--data", text],
        ["--data", text + "/deeper"], ["--record", UNWRITABLE], ["--record", text],
        ["--key-file", missing], ["--key-file", text], ["--key-file", t.folder],
    ]
    commands = [(arguments, BAD_USE) for arguments in bad_use]
    return commands + [(arguments, FAILURE) for arguments in failures], [busy, taken]


def _file(t, name, content):
    path = os.path.join(t.folder, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


def _run(t, arguments, code, shown=None):
    """Runs `muster`, which must end with one line on standard error; returns the defects found."""
    shown = " ".join(repr(part) if not part.isprintable() or not part else part
                     for part in shown or arguments)
    try:
        done = subprocess.run(
            [t.muster, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
            env=clean_environment(t.folder), cwd=t.folder)
    except subprocess.TimeoutExpired:
        return f"{shown}: does not end"
    lines = done.stderr.decode(errors="replace").splitlines()
    if done.returncode != code:
        return f"{shown}: exit code {done.returncode}, not {code}: {lines[:3]}"
    if len(lines) != 1:
        return f"{shown}: {len(lines)} lines: {lines[:3]}"
    if not lines[0].startswith("muster: ") or lines[0].count(": ") < 2 or not _is_tame(lines[0]):
        return f"{shown}: {lines[0]!r} is not `muster: what: what to do`"
    if done.stdout:
        return f"{shown}: writes on standard output"
    return None


def _is_tame(text):
    return all(letter.isprintable() for letter in text)


@check(gate=True)
def a_bad_command_line_is_one_clear_error(t):
    commands, held = _bad_commands(t)
    for one in held:
        t.later(one.close)
    defaults = {
        "--data": os.path.join(t.folder, "data"), "--video": "none", "--audio": "none",
        "--speaker": "none", "--interface": "lo", "--passphrase": "x",
    }
    for arguments, code in commands:
        rest = ["--json"]
        if "--view" not in arguments:
            rest.append("--no-view")
        for option, value in defaults.items():
            clashes = option == "--passphrase" and "--key-file" in arguments
            if option not in arguments and not clashes:
                rest += [option, value]
        wrong = _run(t, ["join", t.channel, *arguments, *rest], code, shown=arguments)
        t.expect(wrong is None, wrong)
    # The last two are of the lab now, whatever follows them.
    others = (["join"], ["--bogus"], ["bogus"], ["join", ""], ["simulate", "--seed", "1"],
              ["bench", "mesh", "--help"])
    for arguments in others:
        wrong = _run(t, arguments, BAD_USE)
        t.expect(wrong is None, wrong)
    t.figure("commands", len(commands) + len(others))


@check()
def a_directory_of_someone_else_is_one_clear_line(t):
    if os.geteuid() != 0:
        t.skip("only root can be someone else")
    directory = os.path.join(t.folder, "theirs")
    os.mkdir(directory, 0o755)
    os.chmod(os.path.dirname(t.folder), 0o755)
    os.chmod(t.folder, 0o755)
    arguments = ["join", t.channel, "--json", "--no-view", "--interface", "lo", "--video", "none",
                 "--audio", "none", "--speaker", "none", "--passphrase", "x"]
    for option in ("--data", "--record"):
        more = ["--data", os.path.join("/tmp", f"muster-{t.channel}")]
        command = [t.muster, *arguments, option, directory]
        command += more if option == "--record" else []
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10,
                env=clean_environment(directory), user="nobody", group="nogroup", cwd="/")
        except PermissionError:
            t.skip("nobody may not run this build")
        finally:
            subprocess.run(["rm", "-rf", more[1]], check=False)
        lines = done.stderr.splitlines()
        t.expect(done.returncode == FAILURE, f"{option}: exit code {done.returncode}: {lines[:2]}")
        t.expect(len(lines) == 1 and lines[0].startswith("muster: "), f"{option}: {lines}")


@check()
def help_and_version_are_no_errors(t):
    for arguments in (["--help"], ["join", "--help"], ["--version"]):
        done = subprocess.run([t.muster, *arguments], capture_output=True, text=True, timeout=10)
        t.expect(done.returncode == 0 and done.stdout and not done.stderr, f"{arguments}")
    done = subprocess.run([t.muster, "join", "--help"], capture_output=True, text=True, timeout=10)
    wanted = ["--name", "--passphrase", "--key-file", "--call", "--watch", "--video", "--audio",
              "--speaker", "--video-bitrate", "--uplink", "--peer", "--no-lan", "--listen",
              "--interface", "--max-video", "--record", "--view", "--no-view", "--open", "--data", "--json",
              "--for", "--log-level"]
    missing = [option for option in wanted if option not in done.stdout]
    t.expect(not missing, f"join --help does not name {missing}")


@check()
def devices_and_doctor_list_what_is_there(t):
    for name, words in (("devices", ("--video", "--audio", "--speaker")),
                        ("doctor", ("multicast", "interface", "clock", "data directory"))):
        done = subprocess.run([t.muster, name], capture_output=True, text=True, timeout=30,
                              env=clean_environment(t.folder))
        t.expect(done.returncode == 0, f"{name}: exit code {done.returncode}")
        t.expect(not done.stderr, f"{name} says {done.stderr[:200]}")
        missing = [word for word in words if word not in done.stdout]
        t.expect(not missing, f"{name} does not speak of {missing}")
        t.expect(all(_is_tame(line) for line in done.stdout.splitlines()), f"{name}: controls")


@check(measures=True)
def commands_that_cannot_be_done_are_echoed_and_change_nothing(t):
    node = t.node("anna", call=False)
    node.ready()
    lines = [
        b"nonsense", b"{}", b"[]", b'{"do":"dance"}', b'{"do":"mute"}', b'{"do":"join-call"}',
        b'{"do":"leave-call"}', b'{"do":"watch","member":"ffffffffffffffff","off":true}',
        b'{"do":"start-call","channel":"elsewhere"}', b"\xff\xfe\x00",
        b'{"do":"\\u001b[2J"}', b"[" * 3000, b'{"do":"' + b"x" * 9000 + b'"}',
    ]
    for number, line in enumerate(lines):
        at = node.send(line)
        event = node.wait("error", since=at, limit=5)
        t.expect(event["message"] and event["command"] is not None, f"command {number}: {event}")
        t.expect(str(event["command"])[:2] == line.decode(errors="replace")[:2]
                 or not line[:1].isascii(), f"command {number} is not echoed: {event['command']!r}")
    at = node.send(b"")
    node.send("start-call")
    node.wait("call.started", since=at)
    t.expect(not node.all("error", since=at), "an empty line is an error")
    node.process.stdin.close()
    t.pause(1.2)
    t.expect(node.is_running, "the end of its input ended the node")
    node.wait("stats", since=at + 1)
    t.figure("commands", len(lines))


@check(measures=True)
def hostile_names_come_out_harmless(t):
    names = {
        "escapes": "\x1b[2J\x1b]0;owned\x07evil", "lines": "a\nb\r{\"event\":\"ready\"}",
        "paths": "../../../etc/passwd", "turned": "abc\u202edef\u2066",
        "quotes": '"\\\\<b>&amp;</b>', "long": "\U0001F600" * 200,
    }
    watcher = t.node("anna", record=True)
    watcher.ready()
    seen = []
    for kind, name in names.items():
        other = t.node(kind, "--name", name, record=True)
        other.ready()
        joined = watcher.wait("member.joined", member=other.id)
        shown = joined["name"]
        bad = [letter for letter in shown if ord(letter) < 32 or 127 <= ord(letter) < 160
               or letter in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"]
        t.expect(not bad, f"{kind}: {shown!r}")
        t.expect(0 < len(shown.encode()) <= 64, f"{kind}: {len(shown.encode())} bytes")
        watcher.first_frame(other)
        seen.append(other)
        t.pause(0.3)
        other.send("quit")
        other.ended(3)
    watcher.send("quit")
    watcher.ended(3)
    raw = bytes(watcher.raw)
    t.expect(not any(byte < 32 and byte != 10 for byte in raw), "control bytes in the events")
    t.expect(not watcher.broken, f"not JSON: {watcher.broken[:1]}")
    folder = os.path.join(watcher.folder, "record")
    files = sorted(os.listdir(folder))
    odd = [name for name in files if not all(
        letter.isascii() and (letter.isalnum() or letter in "-_.") for letter in name)
        or name.startswith(".") or ".." in name]
    t.expect(not odd, f"odd file names: {odd}")
    for other in seen:
        watcher.recording(other, "ivf")
    inside = [name for _, _, names in os.walk(t.folder) for name in names if "passwd" in name]
    t.expect(all(name in files for name in inside), "a file outside of the directory")
    t.figure("names", len(names))


@check()
def the_browser_gets_a_file_and_no_address(t):
    """Everyone can read command lines, and the page's address has its token."""
    programs = os.path.join(t.folder, "bin")
    os.mkdir(programs)
    seen = os.path.join(t.folder, "seen")
    opener = os.path.join(programs, "xdg-open")
    with open(opener, "w") as file:
        file.write(f'#!/bin/sh\nstat -c %a "$1" > {seen}.new\n'
                   f'echo "$@" >> {seen}.new\ncat "$1" >> {seen}.new\nmv {seen}.new {seen}\n')
    os.chmod(opener, 0o755)
    path = f"{programs}:{os.environ['PATH']}"
    arguments = ["kitchen", "--interface", "lo", "--json", "--open", "--data", f"{t.folder}/data",
                 "--video", "none", "--audio", "none", "--speaker", "none"]
    node = Node(t.muster, "anna", arguments, os.path.join(t.folder, "anna"), environment={
        "DISPLAY": ":9", "PATH": path, "XDG_RUNTIME_DIR": t.folder})
    t.nodes.append(node)
    page = node.ready()["view"]
    t.until(lambda: os.path.exists(seen), "a browser")
    with open(seen) as file:
        mode, given, *content = file.read().splitlines()
    t.expect(mode == "600", f"others can read the file: {mode}")
    t.expect(page.split("t=")[1] not in given and given.endswith(".html"), f"argument: {given}")
    t.expect(any(f"url={page}" in line for line in content), f"leads to {content}")
    node.send("quit")
    node.ended(5)
    t.expect(not os.path.exists(given), "the file stays")
