"""A home router with port mapping: miniupnpd in the router's namespace."""

import os
import re
import shutil
import socket
import struct
import subprocess
import threading
import time

from nat import nft
from netns import inside
from node import Unexpected

_HTTP = 5000
_STUN = 3478

# miniupnpd's log lines once it serves.
_NATPMP_READY, _UPNP_READY = "Listening for NAT-PMP", "HTTP listening on port"

# RFC 5389: binding request, its response, and the attribute MAPPED-ADDRESS for IPv4.
_BINDING_REQUEST, _BINDING_RESPONSE = 0x0001, 0x0101
_MAPPED_ADDRESS, _IPV4 = 0x0001, 1


def reason_against_gateways():
    """The reason why no router can map ports here; None if one can."""
    return None if shutil.which("miniupnpd") else "no miniupnpd: install miniupnpd-nftables"


class Gateway:
    """Maps ports of a home until closed, by NAT-PMP (RFC 6886), UPnP or both."""

    def __init__(self, home, folder, natpmp=True, upnp=True):
        self._home = home
        os.makedirs(folder, exist_ok=True)
        self._log_path = os.path.join(folder, "log")
        settings = os.path.join(folder, "conf")
        with open(settings, "w", encoding="ascii") as file:
            file.write(_settings(natpmp, upnp))
        nft(home.namespace, _CHAINS)
        self._stun = _Stun(home)
        with open(self._log_path, "wb") as log:
            self._process = subprocess.Popen(
                ["ip", "netns", "exec", home.namespace,
                 "miniupnpd", "-d", "-f", settings,
                 # The default file is the machine's, and may name a process of another run.
                 "-P", os.path.join(folder, "pid")], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, cwd=folder)
        try:
            self._expect_ready([_NATPMP_READY] * natpmp + [_UPNP_READY] * upnp)
        except Unexpected:
            self.close()
            raise

    def mappings(self):
        """The UDP mappings as (external port, internal address, internal port)."""
        with inside(self._home.namespace):
            listed = subprocess.run(["nft", "list", "chain", "inet", "mapped", "arriving"],
                                    capture_output=True, text=True, check=True)
        found = re.findall(r"dport (\d+) dnat ip to ([\d.]+):(\d+)", listed.stdout)
        return [(int(outer), address, int(inner)) for outer, address, inner in found]

    def close(self):
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(3)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._stun.close()

    def _expect_ready(self, words):
        end = time.monotonic() + 10
        while time.monotonic() < end and self._process.poll() is None:
            log = self._log()
            if all(word in log for word in words):
                return
            time.sleep(0.05)
        raise Unexpected(f"miniupnpd is not ready: {self._log()[-500:]!r}")

    def _log(self):
        with open(self._log_path, encoding="utf-8", errors="replace") as file:
            return file.read()


class _Stun:
    """A STUN server that confirms the router's external address to miniupnpd, which does not
    accept a documentation address (RFC 5737) by itself."""

    def __init__(self, home):
        self._address = socket.inet_aton(home.outside)
        with inside(home.namespace):
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", _STUN))
        self._socket.settimeout(0.2)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        self._ended.set()
        self._thread.join(2)
        self._socket.close()

    def _serve(self):
        while not self._ended.is_set():
            try:
                request, (_, port) = self._socket.recvfrom(1500)
            except TimeoutError:
                continue
            if len(request) < 20 or struct.unpack_from("!H", request)[0] != _BINDING_REQUEST:
                continue
            answer = struct.pack("!HH", _BINDING_RESPONSE, 12) + request[4:20]
            answer += struct.pack("!HHBBH", _MAPPED_ADDRESS, 8, 0, _IPV4, port) + self._address
            self._socket.sendto(answer, ("127.0.0.1", port))


# The chains that miniupnpd fills; nat.py's rules accept the traffic that they translate.
_CHAINS = """
    table inet mapped
    delete table inet mapped
    table inet mapped {
        chain passing { type filter hook forward priority 10; }
        chain arriving { type nat hook prerouting priority -90; }
        chain leaving { type nat hook postrouting priority 110; }
    }"""


def _settings(natpmp, upnp):
    words = {True: "yes", False: "no"}
    return f"""\
ext_ifname=wan
listening_ip=lan
http_port={_HTTP}
ext_perform_stun=yes
ext_stun_host=127.0.0.1
ext_stun_port={_STUN}
enable_natpmp={words[natpmp]}
enable_upnp={words[upnp]}
upnp_table_name=mapped
upnp_nat_table_name=mapped
upnp_forward_chain=passing
upnp_nat_chain=arriving
upnp_nat_postrouting_chain=leaving
"""
