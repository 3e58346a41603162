"""A fresh Debian 12 in a folder, in which commands run apart from this machine."""

import os
import shutil
import signal
import subprocess
import time

_RELEASE = "bookworm"
# What a person has who reads manual pages and completes commands; a minimal Debian has none of it.
_TOOLS = ["man-db", "bash-completion", "zsh", "fish", "systemd", "systemd-sysv", "dbus", "procps"]


def reason_against_roots():
    if os.geteuid() != 0:
        return "not root"
    missing = [tool for tool in ("debootstrap", "unshare") if not shutil.which(tool)]
    return f"no {missing[0]}" if missing else None


class Root:
    """A copy of the fresh Debian, which is made once and kept in the cache."""

    def __init__(self, folder):
        self.path = folder
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        cached = os.path.join(base, "muster-debian", _RELEASE)
        if not os.path.exists(cached):
            unfinished = cached + ".unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            _make(unfinished)
            os.rename(unfinished, cached)
        subprocess.run(["cp", "-a", cached, folder], check=True)

    def copy(self, folder):
        """Another one that is as this one is now."""
        made = Root.__new__(Root)
        made.path = folder
        subprocess.run(["cp", "-a", self.path, folder], check=True)
        return made

    def run(self, *command, network=True, check=True, limit=600):
        """Runs a command in it, with processes of its own and, without `network`, with a loopback
        interface alone."""
        inside = ["chroot", self.path, *command]
        if not network:
            inside = ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", *inside]
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork",
             "sh", "-c", _MOUNTS, "sh", self.path, *inside],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=limit,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                 "HOME": "/tmp", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                 "MANPAGER": "cat"})
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:"
                               f" {done.stdout[-800:]} {done.stderr[-800:]}")
        return done

    def boot(self, namespace=None):
        """Starts its systemd in a network namespace, or with a loopback interface alone."""
        return Machine(self, namespace)

    def files(self):
        """Every path, but for what any use of apt or dpkg changes."""
        found = set()
        for folder, folders, names in os.walk(self.path):
            here = os.path.normpath("/" + os.path.relpath(folder, self.path))
            folders[:] = [name for name in folders if os.path.join(here, name) not in _PASSING]
            found |= {os.path.join(here, name) for name in [*folders, *names]}
        return found


class Machine:
    """A root whose systemd runs, in namespaces of its own."""

    _PATIENCE = 120

    def __init__(self, root, namespace):
        network = ("--private-network" if namespace is None
                   else f"--network-namespace-path=/run/netns/{namespace}")
        self._process = subprocess.Popen(
            ["systemd-nspawn", "--directory", root.path, "--boot", network,
             "--capability=CAP_NET_ADMIN", "--register=no", "--keep-unit", "--quiet"],
            env={**os.environ, "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        end = time.monotonic() + self._PATIENCE
        while not self._is_up():
            if time.monotonic() > end or self._process.poll() is not None:
                self.stop()
                raise RuntimeError("its systemd does not come up")
            time.sleep(0.5)

    def _is_up(self):
        state = self._run("systemctl", "is-system-running").stdout.strip()
        return state in ("running", "degraded")

    @property
    def entry(self):
        """What a command line begins with that runs in it."""
        return ["nsenter", "--target", str(self._init()), "--all"]

    def run(self, *command, check=True, text=None):
        """Runs a command in it, with a text as its input."""
        done = self._run(*command, text=text)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout[-800:]} {done.stderr[-800:]}")
        return done.stdout

    def _run(self, *command, text=None):
        if self._init() is None:
            return subprocess.CompletedProcess(command, 1, "", "")
        return subprocess.run(
            [*self.entry, *command], capture_output=True, text=True, check=False,
            timeout=self._PATIENCE, input=text or "")

    def _init(self):
        """The process that is the first of the namespaces, by its id outside; None before."""
        children = f"/proc/{self._process.pid}/task/{self._process.pid}/children"
        with open(children, encoding="ascii") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/status", encoding="ascii") as status:
                    if any(line.split()[0] == "NSpid:" and line.split()[2:] == ["1"]
                           for line in status):
                        return int(child)
        return None

    def stop(self):
        if self._process.poll() is None:
            # All of the namespaces ends with their first process, and with systemd-nspawn nothing.
            init = self._init()
            if init is not None:
                os.kill(init, signal.SIGKILL)
            else:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


# Its devices are its own, too: a script that runs as root in it cannot break those of this machine.
_MOUNTS = """
set -e
root=$1; shift
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 none "$root/dev"
mkdir "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=666 none "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/tty" c 5 0
exec "$@"
"""
_PASSING = {"/proc", "/dev", "/sys", "/tmp", "/run", "/var/cache", "/var/log", "/var/lib/apt",
            "/var/lib/dpkg"}


def _make(folder):
    """From the mirror, and with the settings of apt, of this machine."""
    os.makedirs(folder)
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)"], capture_output=True,
        text=True, check=True)
    mirrors = [line.split()[1] for line in listed.stdout.splitlines()
               if line.split()[0] == _RELEASE]
    subprocess.run(["debootstrap", "--variant=minbase", _RELEASE, folder, *mirrors[:1]],
                   check=True, capture_output=True)
    os.remove(os.path.join(folder, "etc/apt/sources.list"))
    for name in ("sources.list", "sources.list.d", "auth.conf.d", "trusted.gpg.d", "keyrings"):
        source = os.path.join("/etc/apt", name)
        if os.path.exists(source):
            subprocess.run(["cp", "-a", "--no-target-directory", source,
                            os.path.join(folder, "etc/apt", name)], check=True)
    settings = "/etc/apt/apt.conf.d"
    for path in (os.path.join(settings, name) for name in os.listdir(settings)):
        with open(path, encoding="utf-8", errors="replace") as file:
            if "Acquire" in file.read():
                shutil.copy(path, os.path.join(folder, "etc/apt/apt.conf.d"))
    shutil.copy("/etc/resolv.conf", os.path.join(folder, "etc/resolv.conf"))
    # Containers' images leave manual pages out; this is a Debian as people have it.
    root = Root.__new__(Root)
    root.path = folder
    root.run("apt-get", "update")
    root.run("apt-get", "install", "--yes", "--no-install-recommends", *_TOOLS)
    root.run("apt-get", "clean")
