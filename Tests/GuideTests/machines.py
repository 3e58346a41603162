"""The machines of the guide's readers: each a fresh Debian with its own systemd, on a network."""

import os
import shutil
import subprocess

from debian_root import Root
from terminal import Terminal

# What a Debian on somebody's desk has and a minimal one lacks.
_TOOLS = ["sudo", "iproute2", "iputils-ping", "less", "xdg-utils"]
# The reader's devices, in place of a camera, a microphone and a loudspeaker. The shell notes the
# exit code of each command.
_PROFILE = """
export MUSTER_VIDEO=/srv/camera{ending} MUSTER_AUDIO=/srv/speech.wav MUSTER_SPEAKER=none
export LESS=-FRX PAGER=less
PROMPT_COMMAND='echo $? >>"$CODES"; PS1="$ "'
"""


class Workshop:
    """Makes machines with the Debian package. `camera` returns what a user's camera sees, and
    everybody says what is in the file `speech`."""

    def __init__(self, folder, package, camera, speech):
        self._folder, self._package = folder, package
        self._camera, self._speech = camera, speech
        os.makedirs(folder, exist_ok=True)
        self._bare = self._installed = None

    def root(self, folder, name, with_package):
        """A new root with the users' tools, and with Muster or with its package as a file."""
        if self._bare is None:
            self._bare = Root(os.path.join(self._folder, "bare"))
            self._bare.run("apt-get", "update")
            self._bare.run("apt-get", "install", "--yes", "--no-install-recommends", *_TOOLS)
            # Its reader answers every question of apt with yes.
            with open(os.path.join(self._bare.path, "etc/apt/apt.conf.d/90reader"), "w",
                      encoding="ascii") as file:
                file.write('APT::Get::Assume-Yes "true";\n')
        if with_package and self._installed is None:
            self._installed = self._bare.copy(os.path.join(self._folder, "installed"))
            shutil.copy(self._package, os.path.join(self._installed.path, "srv"))
            self._installed.run(
                "apt-get", "install", "--yes", "--no-install-recommends",
                os.path.join("/srv", os.path.basename(self._package)))
        root = (self._installed if with_package else self._bare).copy(
            os.path.join(folder, name))
        self._move_in(root, name)
        return root

    def _move_in(self, root, user):
        """Makes the reader's account, which has the package in its home."""
        root.run("useradd", "--create-home", "--shell", "/bin/bash", user)
        with open(os.path.join(root.path, f"etc/sudoers.d/{user}"), "w", encoding="ascii") as file:
            file.write(f"{user} ALL=(ALL) NOPASSWD: ALL\n")
        with open(os.path.join(root.path, "etc/hostname"), "w", encoding="ascii") as file:
            file.write(user + "\n")
        with open(os.path.join(root.path, "etc/hosts"), "a", encoding="ascii") as file:
            file.write(f"127.0.1.1 {user}\n")
        camera = self._camera(user)
        ending = os.path.splitext(camera)[1]
        shutil.copy(camera, os.path.join(root.path, "srv/camera" + ending))
        shutil.copy(self._speech, os.path.join(root.path, "srv/speech.wav"))
        profile = os.path.join(root.path, "etc/profile.d/reader.sh")
        with open(profile, "w", encoding="ascii") as file:
            file.write(_PROFILE.format(ending=ending))
        shutil.copy(self._package, os.path.join(root.path, "home", user))
        root.run("chown", "-R", f"{user}:{user}", os.path.join("/home", user))


class Computer:
    """A running machine on a host of the lab, and the terminals at which its reader sits."""

    def __init__(self, name, root, namespace, socket):
        self.name, self.namespace = name, namespace
        self._root, self._socket = root, socket
        self._terminals = {}
        self._machine = root.boot(namespace)

    def terminal(self, number=1):
        if number not in self._terminals:
            codes = f"home/{self.name}/.codes-{number}"
            self._terminals[number] = Terminal(
                self._socket, f"{self.name}-{number}",
                ["env", f"CODES=/{codes}", "TERM=screen-256color", *self._machine.entry,
                 "su", "--login", "--whitelist-environment", "CODES", self.name],
                os.path.join(self._root.path, codes))
        return self._terminals[number]

    def write(self, path, text):
        """Writes a file with an editor's means: as root, and readable by root alone, below /etc."""
        user = "root" if path.startswith("/etc/") else self.name
        self._machine.run(
            "su", "--login", user, "--command",
            f"umask 077; mkdir -p \"$(dirname {path})\"; cat >{path}", text=text)

    def take(self, path, other):
        """Takes a file or folder from another machine's home into this one's."""
        home = os.path.join(self._root.path, "home", self.name)
        subprocess.run(["cp", "-r", os.path.join(other._root.path, "home", other.name, path), home],
                       check=True)
        self._machine.run("chown", "-R", self.name, os.path.join("/home", self.name, path))

    def close(self):
        for terminal in self._terminals.values():
            terminal.close()
        self._machine.stop()


def stop_terminals(socket):
    """Ends the server of the terminals, if there is one."""
    subprocess.run(["tmux", "-S", socket, "kill-server"], check=False, capture_output=True)
