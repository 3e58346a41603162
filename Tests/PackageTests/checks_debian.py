"""The Debian package in a fresh Debian."""

import json
import os
import shutil
import time

from check import check
from completions import BASH, FISH, ZSH
from debian_root import Root

_INSTALL = ("apt-get", "install", "--yes", "--no-install-recommends", "/srv/muster.deb")


@check(needs=("root", "package"))
def the_package_installs_works_and_leaves_nothing(t):
    root = _root_with_package(t)
    before = root.files()
    packages = _packages(root)
    started = time.monotonic()
    root.run(*_INSTALL)
    t.figures.append(f"installed in {time.monotonic() - started:.0f} s with"
                     f" {len(_packages(root)) - len(packages) - 1} other packages")
    megabytes = os.path.getsize(t.package) / 1e6
    t.figures.append(f"package {megabytes:.1f} MB")

    t.expect(not root.run("sh", "-c", "command -v swift", check=False).stdout, "Swift is there")
    demo = root.run("muster", "demo", "--for", "10", network=False)
    t.expect("Everyone saw everyone" in demo.stdout, f"the demo: {demo.stdout} {demo.stderr}")
    for page in ("muster", "muster-join", "muster-channel", "muster-rendezvous"):
        shown = root.run("man", page)
        t.expect("SYNOPSIS" in shown.stdout and not shown.stderr, f"man {page}: {shown.stderr}")
    t.expect("muster" in root.run("apropos", "muster-join").stdout, "apropos does not find it")
    for shell, script, path in (
            ("bash", BASH, "/usr/share/bash-completion/completions/muster"),
            ("fish", FISH, "/usr/share/fish/vendor_completions.d/muster.fish"),
            ("zsh", ZSH, "/usr/share/zsh/vendor-completions/_muster")):
        found = root.run(shell, "-c", script, shell, path, "muster jo", check=False)
        t.expect("join" in found.stdout.split(), f"{shell}: {found.stdout} {found.stderr}")
    # Where shells look by themselves.
    loaded = root.run("bash", "-c", "source /usr/share/bash-completion/bash_completion;"
                      " _completion_loader muster; complete -p muster")
    t.expect("_muster" in loaded.stdout, f"bash does not load it: {loaded.stdout}")
    offered = root.run("fish", "-c", "complete --do-complete 'muster jo'")
    t.expect("join" in offered.stdout, f"fish does not load it: {offered.stdout}")

    # What a standing node would have kept, and its settings.
    root.run("sh", "-c", "mkdir -p /etc/muster /var/lib/private/muster/crew;"
             " touch /etc/muster/crew.toml /var/lib/private/muster/crew/store;"
             " ln -s private/muster /var/lib/muster")
    root.run("apt-get", "purge", "--yes", "muster")
    # A package that is there may suggest what came along; that alone keeps nothing.
    root.run("apt-get", "autoremove", "--purge", "--yes",
             "-o", "APT::AutoRemove::SuggestsImportant=0")
    t.expect(_packages(root) == packages, "packages are left")
    left = {path for path in root.files() - before if path != "/var/lib/private"}
    t.expect(not left, f"left: {sorted(left)[:20]}")


@check(needs=("root", "package", "systemd-nspawn"))
def the_units_run_a_rendezvous_and_standing_nodes(t):
    root = _root_with_package(t)
    root.run(*_INSTALL)
    os.makedirs(os.path.join(root.path, "etc/muster"))
    for name in ("hall", "yard"):
        path = os.path.join(root.path, f"etc/muster/{name}.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'channels = ["{t.channel}"]\npassphrase = "{t.passphrase}"\n'
                       f'name = "{name}"\ncall = true\nvideo = "test"\naudio = "tone"\n'
                       'speaker = "none"\ninterface = "lo"\nmax-video = "640x360"\n')
        os.chmod(path, 0o600)
    with open(os.path.join(root.path, "etc/muster/wrong.toml"), "w", encoding="utf-8") as file:
        file.write(f'channels = ["{t.channel}"]\npasphrase = "{t.passphrase}"\n')
    machine = root.boot()
    t.later(machine.stop)

    def journal(unit, event):
        lines = machine.run("journalctl", "--unit", unit, "--output", "cat").splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [one for one in events if one["event"] == event]

    t.expect("inactive" in machine.run("systemctl", "is-active", "muster-rendezvous", check=False),
             "installing starts a rendezvous")
    machine.run("systemctl", "start", "muster-rendezvous", "muster@hall", "muster@yard")
    t.until(lambda: journal("muster-rendezvous", "ready"), "a rendezvous", limit=60)
    t.until(lambda: journal("muster@hall", "media.first-frame"), "video in the hall", limit=60)
    t.until(lambda: journal("muster@yard", "media.first-frame"), "video in the yard", limit=60)
    names = {unit: machine.run("systemctl", "show", "--property=MainPID", "--value", unit).strip()
             for unit in ("muster@hall", "muster-rendezvous")}
    for unit, process in names.items():
        owner = machine.run("stat", "--format=%u", f"/proc/{process}").strip()
        t.expect(owner != "0", f"{unit} runs as root")
    # What runs is restarted by a new version, here the same once more, and keeps its identity.
    machine.run("dpkg", "--install", "/srv/muster.deb")
    t.until(lambda: len(journal("muster@hall", "ready")) == 2, "the hall comes back", limit=60)
    t.until(lambda: len(journal("muster-rendezvous", "ready")) == 2, "so does the other",
            limit=60)
    first, second = (one["key"] for one in journal("muster@hall", "ready"))
    t.expect(first == second, "the node came back as another one")
    left = {one["reason"] for one in journal("muster@yard", "member.left")}
    t.expect(left <= {"left"}, f"it does not leave cleanly: {left}")
    refused = machine.run("systemctl", "start", "muster@nowhere", check=False)
    state = machine.run("systemctl", "is-active", "muster@nowhere", check=False).strip()
    t.expect(state == "inactive", f"a node without settings is {state}: {refused}")
    # One with wrong settings does not start, is not tried again, and says why.
    machine.run("systemctl", "start", "muster@wrong", check=False)
    t.until(lambda: "failed" in machine.run("systemctl", "is-active", "muster@wrong", check=False),
            "a node with wrong settings to fail", limit=60)
    said = machine.run("journalctl", "--unit", "muster@wrong", "--output", "cat")
    t.expect("did you mean passphrase?" in said and "status=2" in said
             and not journal("muster@wrong", "ready"), f"a node with wrong settings: {said}")

    machine.run("apt-get", "purge", "--yes", "muster")
    t.expect("muster" not in machine.run("ps", "-e", "-o", "comm", check=False), "it still runs")
    for path in ("etc/muster", "var/lib/muster", "var/lib/private/muster"):
        t.expect(not os.path.lexists(os.path.join(root.path, path)), f"/{path} is left")


def _root_with_package(t):
    """A fresh Debian in which the package lies as a file."""
    root = Root(os.path.join(t.folder, "root"))
    shutil.copy(t.package, os.path.join(root.path, "srv/muster.deb"))
    root.run("apt-get", "update")
    return root


def _packages(root):
    listed = root.run("dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n")
    return {line for line in listed.stdout.splitlines() if not line.endswith("not-installed")}
