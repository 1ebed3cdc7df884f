"""A client of PostgreSQL's protocol in plain Python: for tests/server/server_soak.py and bench/server.py, which run where no
driver is, and know when each byte is sent.

Start at: Client.
"""

import socket
import struct


class ServerError(Exception):
    """What the server answered instead."""


def message(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


def startup():
    body = struct.pack("!I", 196608) + b"user\0client\0\0"
    return struct.pack("!I", len(body) + 4) + body


class Client:
    """`address` is a port of this machine or the path of a Unix socket."""

    def __init__(self, address, logs_in=True, timeout=60):
        self.address, self.timeout = address, timeout
        self.socket = self._connect()
        self.pending = bytearray()  # received and not read yet
        self.key = b""
        if logs_in:
            self.socket.sendall(startup())
            for kind, body in self.until_ready():
                if kind == b"K":
                    self.key = body

    def _connect(self):
        if isinstance(self.address, int):
            return socket.create_connection(("127.0.0.1", self.address), timeout=self.timeout)
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(self.timeout)
        connected.connect(self.address)
        return connected

    def exactly(self, n):
        while len(self.pending) < n:
            piece = self.socket.recv(1 << 16)
            if not piece:
                raise EOFError("the server closed the connection")
            self.pending += piece
        data = bytes(self.pending[:n])
        del self.pending[:n]
        return data

    def next_message(self):
        kind, size = struct.unpack("!cI", self.exactly(5))
        return kind, self.exactly(size - 4)

    def until_ready(self):
        got = []
        while not got or got[-1][0] != b"Z":
            got.append(self.next_message())
        return got

    def query(self, sql):
        self.socket.sendall(message(b"Q", sql.encode() + b"\0"))

    def run(self, sql):
        """The messages that answer a text. Raises ServerError."""
        self.query(sql)
        return checked(self.until_ready())

    def copy_in(self, sql, pieces):
        """COPY FROM STDIN of these pieces of bytes. Raises ServerError."""
        self.query(sql)
        got = [self.next_message()]
        while got[-1][0] not in (b"G", b"E"):
            got.append(self.next_message())
        if got[-1][0] == b"G":
            for piece in pieces:
                self.socket.sendall(message(b"d", piece))
            self.socket.sendall(message(b"c"))
        return checked(got + self.until_ready())

    def cancel(self):
        with self._connect() as s:
            s.sendall(struct.pack("!II", 16, 80877102) + self.key)

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()


def checked(messages):
    for kind, body in messages:
        if kind == b"E":
            said = {field[:1]: field[1:].decode() for field in body.split(b"\0") if field}
            raise ServerError(f"{said.get(b'C')}: {said.get(b'M')}")
    return messages


def fields(messages):
    """The rows among them, as texts; NULL is an empty one."""
    out = []
    for kind, body in messages:
        if kind != b"D":
            continue
        at, row = 2, []
        for _ in range(struct.unpack("!H", body[:2])[0]):
            size = struct.unpack("!i", body[at:at + 4])[0]
            at += 4
            row.append(body[at:at + max(size, 0)].decode())
            at += max(size, 0)
        out.append(row)
    return out
