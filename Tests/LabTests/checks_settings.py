"""Settings from a file and from variables: what is meant starts, and nothing else does."""

import os
import subprocess

from check import check
from node import Node, clean_environment

BAD_USE = 2


def _write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


@check()
def a_wrong_settings_file_starts_no_node(t):
    good = f'channels = ["{t.channel}"]\nname = "anna"\n'
    wrong = [
        ('vidoe = "test"\n', "did you mean video?"), ("name = 5\n", "line 3"),
        ("video-bitrate = 5\n", "30 to 20000"), ("view = true\n", "view = 8080"),
        ("call = true\nwatch = true\n", "exclude each other"), ("no-lan = maybe\n", "line 3"),
        ('passphrase = "x"\nkey-file = "y"\n', "exclude each other"), ("[=]\n", "line 3"),
        ('data = ""\n', "is empty"), ('peer = ["192.0.2.7"]\n', "HOST:PORT"),
        ('listen = "host:1"\n', "0.0.0.0:4711"), (f'channels = ["{t.channel}", ""]\n', "bytes"),
    ]
    home = os.path.join(t.folder, "home")
    path = os.path.join(home, ".config", "muster", "config.toml")
    # The user's own file, one that an option names, and one that a variable names.
    ways = (([], {}), (["--config", path], {"HOME": t.folder}),
            ([], {"HOME": t.folder, "MUSTER_CONFIG": path}))
    for index, (text, hint) in enumerate(wrong):
        _write(path, text if text.startswith("channels") else good + text)
        options, more = ways[index % len(ways)]
        # Commands that use the data directory only check values that would change what they do.
        others = ("channel list", "doctor --node", "identity export backup")
        is_of_joining = text.startswith(("video-bitrate", "peer", "listen", "channels"))
        for command in ("join", "config", *(() if is_of_joining else others)):
            ended = subprocess.run(
                [t.muster, *command.split(), *options], capture_output=True, text=True,
                check=False, timeout=30, stdin=subprocess.DEVNULL, cwd=t.folder,
                env=clean_environment(home, more))
            errors = ended.stderr.splitlines()
            is_refused = ended.returncode == BAD_USE and len(errors) == 1
            t.expect(is_refused and hint in errors[0],
                     f"{command} with {text!r}: {ended.returncode}, {ended.stderr!r}")
            t.expect(command == "config" or not ended.stdout, f"it started: {ended.stdout!r}")
    t.expect(not os.path.exists(os.path.join(home, "xdg")), "something has started")


@check()
def options_win_over_variables_and_variables_over_the_file(t):
    data = os.path.join(t.folder, "settings.data")
    path = _write(os.path.join(t.folder, "settings.toml"), f"""\
        name = "anna"
        channels = ["{t.channel}"]
        passphrase = "{t.passphrase}"
        call = true
        video = "test:160x120@10"
        audio = "none"
        speaker = "none"
        interface = "lo"
        view = 1
        data = "{data}"
        """)
    os.chmod(path, 0o600)
    variables = {"MUSTER_CONFIG": path, "MUSTER_NO_VIEW": "true", "MUSTER_NAME": "dora"}
    first = Node(t.muster, "first", ["--name", "carl"], os.path.join(t.folder, "first"),
                 environment=variables)
    t.nodes.append(first)
    first.ready()
    ready = first.wait("ready")
    t.expect(ready["channels"] == [t.channel] and ready["view"] is None, f"{ready}")
    second = t.node("emil", video="none", audio="none")
    second.wait("member.joined", where=lambda event: event["name"] == "carl")
    second.first_frame(first)
    # Other commands find the node by the same settings.
    listed = subprocess.run(
        [t.muster, "channel", "list"], capture_output=True, text=True, check=False, timeout=30,
        env=clean_environment(t.folder, variables))
    t.expect(t.channel in listed.stdout and not listed.stderr, f"{listed}")
