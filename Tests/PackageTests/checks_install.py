"""What belongs to the command, below a prefix."""

import json
import os
import re
import subprocess

from check import check
from checks_rights import data, run
from completions import BASH, FISH, ZSH
from pseudo_terminal import Terminal

_INSTALL = ".packaging/install"
# Of a shell that completes, in seconds; it takes a fraction of one.
_PATIENCE = 30


@check()
def installing_twice_is_installing_once_and_removing_leaves_nothing(t):
    target = os.path.join(t.folder, "target")
    _install(t, target)
    first = _files(target)
    for wanted in ("bin/muster", "share/man/man1/muster-join.1", "share/doc/muster/EVENTS.md",
                   "share/doc/muster/guide/first-call.md",
                   "share/applications/muster.desktop", "libexec/muster/open",
                   "share/bash-completion/completions/muster",
                   "lib/systemd/system/muster@.service"):
        t.expect(f"opt/m/{wanted}" in first, f"{wanted} is not installed")
    stale = os.path.join(target, "opt/m/share/man/man1/muster-gone.1")
    open(stale, "w", encoding="utf-8").close()
    _install(t, target)
    t.expect(_files(target) == first, "the second time changes what is there")
    beside = os.path.join(target, "opt/m/share/man/man1/other.1")
    open(beside, "w", encoding="utf-8").close()
    _install(t, target, "--remove")
    t.expect(_files(target) == {"opt/m/share/man/man1/other.1"}, f"left: {_files(target)}")


@check()
def no_placeholder_is_left_and_paths_are_of_the_prefix(t):
    target = os.path.join(t.folder, "target")
    _install(t, target)
    for path in sorted(_files(target) - {"opt/m/bin/muster"}):
        if path.endswith(".jpg"):
            continue
        text = _read(target, path)
        t.expect(not re.search(r"@[A-Z]+@", text), f"{path} has a placeholder")
        t.expect(target not in text, f"{path} names the staging directory")
    unit = _read(target, "opt/m/lib/systemd/system/muster@.service")
    t.expect("/opt/m/share/doc/muster" in _read(target, "opt/m/share/man/man1/muster.1"),
             "the manual names another place of the documentation")
    t.expect("ExecStart=/opt/m/bin/muster join" in unit, f"the unit does not start it: {unit}")


@check(needs="groff")
def every_command_and_option_is_in_the_manual(t):
    target = os.path.join(t.folder, "target")
    _install(t, target)
    folder = os.path.join(target, "opt/m/share/man/man1")
    pages = {}
    for name in sorted(os.listdir(folder)):
        shown = subprocess.run(
            ["groff", "-K", "utf8", "-T", "utf8", "-mandoc", "-ww", "-P-cbou", name], cwd=folder,
            capture_output=True, text=True, check=False, env={**os.environ, "MANWIDTH": "200"})
        t.expect(not shown.stderr, f"{name}: {shown.stderr}")
        pages[name] = " ".join(shown.stdout.split())
    dumped = subprocess.run(
        [t.muster, "--experimental-dump-help"], capture_output=True, check=True)
    commands = json.loads(dumped.stdout)["command"]["subcommands"]
    for command in commands:
        if command["commandName"] == "help" or not command["shouldDisplay"]:
            continue
        page = pages.get(f"muster-{command['commandName']}.1", "")
        t.expect(f"muster-{command['commandName']}(1)" in pages["muster.1"],
                 f"muster(1) does not list {command['commandName']}")
        for one in [command, *command.get("subcommands", [])]:
            for argument in one.get("arguments", []):
                name = argument.get("preferredName", {}).get("name")
                t.expect(name in ("help", "version", None) or f"--{name}" in page,
                         f"muster {command['commandName']}: the page lacks --{name}")
    t.figures.append(f"{len(pages)} pages")


@check()
def bash_completes_commands_options_and_values(t):
    _completes(t, "bash", "share/bash-completion/completions/muster", BASH)


@check(needs="fish")
def fish_completes_commands_options_and_values(t):
    _completes(t, "fish", "share/fish/vendor_completions.d/muster.fish", FISH)


@check(needs="zsh")
def zsh_completes_commands_options_and_values(t):
    _completes(t, "zsh", "share/zsh/site-functions/_muster", ZSH)


@check(needs="desktop-file-validate")
def the_desktop_entry_is_valid_and_opens_links(t):
    target = os.path.join(t.folder, "target")
    _install(t, target)
    path = os.path.join(target, "opt/m/share/applications/muster.desktop")
    checked = subprocess.run(["desktop-file-validate", path], capture_output=True, text=True,
                             check=False)
    t.expect(checked.returncode == 0 and not checked.stdout, checked.stdout)
    t.expect("MimeType=x-scheme-handler/muster;" in _read(path), "it opens no links")


@check(needs="systemd-analyze")
def the_units_are_valid_and_sandboxed(t):
    target = os.path.join(t.folder, "target")
    _install(t, target)
    units = os.path.join(target, "opt/m/lib/systemd/system")
    for name in os.listdir(units):
        path = os.path.join(units, name)
        _use_staged(path, target)
        instance = path.replace("@.", "@crew.")
        if instance != path:
            os.rename(path, instance)
        checked = subprocess.run(["systemd-analyze", "verify", "--man=no", instance],
                                 capture_output=True, text=True, check=False)
        about = [line for line in checked.stderr.splitlines() if "muster" in line]
        t.expect(checked.returncode == 0 and not about, f"{name}: {checked.stderr}")
        rated = subprocess.run(
            ["systemd-analyze", "security", "--offline=yes", "--threshold=30", "--no-pager",
             instance], capture_output=True, text=True, check=False)
        exposure = re.search(r"Overall exposure level.*: ([\d.]+)", rated.stdout)
        t.expect(rated.returncode == 0, f"{name} is too exposed: {exposure and exposure[0]}")
        t.figures.append(f"{name}: exposure {exposure[1] if exposure else '?'}")


@check()
def the_desktop_shows_what_is_wrong_with_a_link_until_it_was_read(t):
    terminal = _opened(t, "muster://kitchen/#AAAA")
    terminal.shows("invite")
    terminal.shows("Press Enter")
    terminal.types("\r")
    terminal.ends()


@check()
def a_link_is_asked_about_before_anything_is_sent(t):
    other = t.node("anna")
    other.ready()
    invite = run(t, "invite", t.channel, "--data", data(t, "anna")).splitlines()[0].strip()
    settings = os.path.join(t.folder, "config.toml")
    with open(settings, "w", encoding="utf-8") as file:
        file.write(f'data = "{t.folder}/data"\ninterface = ["lo"]\nno-view = true\nopen = false\n'
                   'video = "test"\naudio = "tone"\nspeaker = "none"\ncall = true\n')
    for answer in ("", "y"):
        terminal = _opened(t, invite, {"MUSTER_CONFIG": settings})
        terminal.shows("Join? [y/N]")
        t.expect("test, tone, at once" in terminal.text, terminal.text)
        terminal.types(f"{answer}\r")
        if answer:
            other.wait("member.joined")
            terminal.types("q")
        else:
            terminal.shows("nothing was joined")
        terminal.ends()
        t.expect(answer or not other.all("member.joined"), "it was joined without an answer")


@check()
def without_a_channel_the_terminal_is_asked_for_one_and_its_passphrase(t):
    data = os.path.join(t.folder, "data")
    other = t.node("anna")
    other.ready()
    arguments = [t.muster, "join", "--data", data, "--interface", "lo", "--no-view", "--name",
                 "berta", "--video", "none", "--audio", "none", "--speaker", "none"]
    terminal = Terminal(t, arguments)
    terminal.shows("Channel or invite: ")
    terminal.types(f"{t.channel}\r")
    terminal.shows(f"Passphrase of {t.channel}")
    terminal.types(f"{t.passphrase}\r")
    other.wait("member.joined")
    t.expect(t.passphrase not in terminal.text, "the passphrase is shown")
    terminal.types("q")
    terminal.ends()
    # The second time it is remembered, with its passphrase.
    terminal = Terminal(t, arguments)
    terminal.shows(f"Remembered channels: {t.channel}")
    terminal.shows("Channel or invite: ")
    at = t.now()
    terminal.types(f"{t.channel}\r")
    other.wait("member.joined", since=at)
    terminal.types("q")
    terminal.ends()


def _install(t, target, *arguments):
    done = subprocess.run(
        [_INSTALL, *(arguments or [t.muster])], capture_output=True, text=True, check=False,
        env={**os.environ, "DESTDIR": target, "PREFIX": "/opt/m"})
    t.require(done.returncode == 0, f"it cannot be installed: {done.stderr}")


def _opened(t, link, variables=None):
    """A terminal in which the desktop opens a link."""
    target = os.path.join(t.folder, "target")
    _install(t, target)
    path = os.path.join(target, "opt/m/libexec/muster/open")
    _use_staged(path, target)
    return Terminal(t, [path, link], variables)


def _files(target):
    return {os.path.relpath(os.path.join(folder, name), target)
            for folder, _, names in os.walk(target) for name in names}


def _read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def _use_staged(path, target):
    """Makes a file start the program below the target, which is not at its final place."""
    text = _read(path).replace("/opt/m/bin", os.path.join(target, "opt/m/bin"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _completes(t, shell, path, script):
    target = os.path.join(t.folder, "target")
    _install(t, target)
    path = os.path.join(target, "opt/m", path)
    # Completions call the command by its name.
    environment = {**os.environ, "PATH": os.path.dirname(t.muster) + ":" + os.environ["PATH"],
                   "HOME": t.folder, "TERM": "xterm"}
    for line, wanted in (("muster jo", "join"), ("muster channel re", "rename"),
                         ("muster join --vid", "--video-bitrate"),
                         ("muster join --muted v", "video")):
        done = subprocess.run(
            [shell, "-c", script, shell, path, line], capture_output=True, text=True, check=False,
            env=environment, timeout=_PATIENCE)
        found = done.stdout.split()
        t.expect(wanted in found, f"{shell}: {line!r} gives {found} {done.stderr[:400]}")
