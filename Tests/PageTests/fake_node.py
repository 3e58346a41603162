"""A stand-in for a node: serves the page's files, and states of the node that a test makes up."""

import base64
import hashlib
import http.server
import json
import os
import struct
import threading
import time
from urllib.parse import urlparse

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, os.pardir, os.pardir, "Sources", "CMusterAssets", "page")
FOOTAGE = os.path.join(HERE, os.pardir, "Vectors", "media", "bunny_320x180.ivf")
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
OWN = "00000000000000aa"
# Seconds; a node sends its state as often when nothing changes.
HEARTBEAT = 1


def member(index, **fields):
    """A member with a camera, in the call."""
    return {
        "id": f"{index:016x}", "name": f"Member {index}", "role": "presenter", "inCall": True,
        "audioMuted": False, "videoMuted": False, "speaking": False, "outranked": False,
        "mayModerate": True, "tile": index, "streams": [], **fields,
    }


def message(number, text, author=1, **fields):
    return {"id": f"{number:016x}", "from": f"{author:016x}", "name": f"Member {author}",
            "text": text, "sentAt": 1_700_000_000_000 + number, **fields}


def room(channel, members=(), messages=(), in_call=True, **own):
    """The state of a channel; its call is that of its members that are in one."""
    inside = [one["id"] for one in members if one["inCall"]] + ([OWN] if in_call else [])
    call = {"id": "c" * 32, "initiator": OWN, "startedAt": time.time() * 1000 - 5000,
            "participants": inside, "successor": members[0]["name"] if members else None}
    return {
        "channel": channel, "kind": "open",
        "channelID": hashlib.sha256(channel.encode()).hexdigest()[:16],
        "self": {
            "id": OWN, "name": "Ada", "role": "presenter", "mayStart": True, "maySend": True,
            "inCall": in_call, "callState": "connected" if in_call else "disconnected",
            "cpuStep": 0,
            "audioMuted": False, "videoMuted": False, "speaking": False, "hasVideo": True,
            "hasAudio": True, "hasShare": True, "mayShare": True, "sharing": False, **own,
        },
        **({"call": call} if inside else {}), "members": list(members), "messages": list(messages),
    }


def snapshot(first, *others):
    return {**first, "channels": [one["channel"] for one in (first, *others)],
            "others": list(others), "notices": []}


class FakeNode:
    """Serves one page; `folder` has its files."""

    def __init__(self, folder=PAGE):
        self.folder = folder
        self.text = json.dumps({"type": "nothing"})
        # The commands that the page has sent, without what it shows.
        self.commands = []
        self.is_stopped = False
        self.sockets = []
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/?t=0"
        self.ended = threading.Event()
        for work in (self.server.serve_forever, self._beat):
            threading.Thread(target=work, daemon=True).start()

    def show(self, state):
        """Sends a snapshot, and repeats it from now on."""
        self.text = json.dumps({"type": "snapshot", "snapshot": state})
        self._broadcast(1, self.text.encode())

    def rest(self):
        """Repeats a message that changes nothing, while the test applies states by itself."""
        self.text = json.dumps({"type": "nothing"})

    def refuse(self, text):
        """Answers a command with an error."""
        error = {"type": "error", "message": text, "command": "say"}
        self._broadcast(1, json.dumps(error).encode())

    def send_frame(self, tile, sequence=1):
        """Sends a keyframe for a tile."""
        with open(FOOTAGE, "rb") as file:
            # The header of the file, and of its first frame, which is a keyframe.
            size = struct.unpack("<I", file.read(44)[32:36])[0]
            frame = file.read(size)
        header = struct.pack(
            "<BBBBIdd", 1, tile, 1, 0, sequence, time.time() * 1000, sequence * 33_333)
        self._broadcast(2, header + frame)

    def close(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

    def _beat(self):
        while not self.ended.wait(HEARTBEAT):
            self._broadcast(1, self.text.encode())

    def _broadcast(self, opcode, data):
        if self.is_stopped:
            return
        if len(data) < 126:
            head = struct.pack("!BB", 0x80 | opcode, len(data))
        elif len(data) < 65536:
            head = struct.pack("!BBH", 0x80 | opcode, 126, len(data))
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 127, len(data))
        with self.lock:
            for socket in list(self.sockets):
                try:
                    socket.sendall(head + data)
                except OSError:
                    self.sockets.remove(socket)

    def _handler(self):
        node = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                path = urlparse(self.path).path
                if path == "/ws":
                    return node._serve_socket(self)
                file = os.path.join(node.folder, "index.html" if path == "/" else path[1:])
                if not os.path.isfile(file):
                    return self.send_error(404)
                with open(file, "rb") as content:
                    body = content.read().replace(b"__TOKEN__", b"0")
                self.send_response(200)
                self.send_header("content-type", TYPES[os.path.splitext(file)[1]])
                self.send_header("content-length", str(len(body)))
                self.send_header(
                    "content-security-policy",
                    "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; "
                    f"img-src data:; connect-src 'self' ws://{self.headers['host']}")
                self.end_headers()
                self.wfile.write(body)
        return Handler

    def _serve_socket(self, request):
        """Admits a page, and notes what it sends until it goes (RFC 6455)."""
        key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        request.wfile.write(
            ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             f"Sec-WebSocket-Accept: {accept}\r\n\r\n").encode())
        request.close_connection = True
        with self.lock:
            self.sockets.append(request.connection)
        self._broadcast(1, self.text.encode())
        while len(head := request.rfile.read(2)) == 2 and head[0] & 15 != 8:
            size = head[1] & 127
            if size == 126:
                size = struct.unpack("!H", request.rfile.read(2))[0]
            mask = request.rfile.read(4)
            data = bytes(
                byte ^ mask[i & 3] for i, byte in enumerate(request.rfile.read(size)))
            if head[0] & 15 == 1:
                command = json.loads(data)
                if command["do"] not in ("show", "keyframe"):
                    self.commands.append(command)
        with self.lock:
            if request.connection in self.sockets:
                self.sockets.remove(request.connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
