"""python-zeroconf, another implementation of DNS-SD, as a process in a namespace.

    python3 zeroconf_peer.py TYPE

Reports the services that it finds as JSON lines: {"event": "found", "service", "addresses", "port",
"text"}, where the text is in hex, and {"event": "gone", "service"}. Each line of standard input is
a service to register: NAME ADDRESS PORT.
"""

import ipaddress
import json
import sys
import threading

from zeroconf import ServiceBrowser, ServiceInfo, ServiceListener, Zeroconf


class Listener(ServiceListener):
    def add_service(self, zeroconf, kind, name):
        # Asking blocks, and the thread that calls this is the one the answer comes by.
        threading.Thread(target=self._ask, args=(zeroconf, kind, name), daemon=True).start()

    def update_service(self, zeroconf, kind, name):
        self.add_service(zeroconf, kind, name)

    def remove_service(self, zeroconf, kind, name):
        say(event="gone", service=name)

    def _ask(self, zeroconf, kind, name):
        info = zeroconf.get_service_info(kind, name, timeout=5000)
        if info is None:
            say(event="silent", service=name)
            return
        # The bytes of the record, not what a dictionary makes of them.
        say(event="found", service=name, addresses=info.parsed_addresses(), port=info.port,
            text=info.text.hex())


def say(**fields):
    # One write, so that the lines of two threads do not mix.
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def main():
    kind = f"{sys.argv[1]}.local."
    zeroconf = Zeroconf()
    ServiceBrowser(zeroconf, kind, Listener())
    say(event="ready")
    for line in sys.stdin:
        name, address, port = line.split()
        zeroconf.register_service(ServiceInfo(
            kind, f"{name}.{kind}", port=int(port), properties={"v": "1"},
            addresses=[ipaddress.ip_address(address).packed], server=f"{name}.local."))
        say(event="registered", service=name)
    zeroconf.close()


if __name__ == "__main__":
    main()
