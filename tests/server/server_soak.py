#!/usr/bin/env python3
"""A server among clients that behave badly: for a while, many connections ask, and are killed, cancelled, frozen, half open,
or send bytes that mean nothing. No answer may be lost or be another's, and memory and files are level at the end.

    tests/server/server_soak.py BUILD_DIR [SECONDS [CONNECTIONS [SEED]]]

Ends with "N passed, N failed".
"""

import os
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from server_process import wait_until_it_says
from wire_client import Client, ServerError, fields, message

BUILD = os.path.abspath(sys.argv[1])
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 60
CONNECTIONS = int(sys.argv[3]) if len(sys.argv) > 3 else 64
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
ROWS = 50_000
LONG = "SELECT count(*) FROM range(40000) AS a(x), range(40000) AS b(y) WHERE (x * y) % 7 = 3"
PARTS = 8  # of the time; memory is looked at after each


class Soak:
    def __init__(self, port):
        self.port = port
        self.wrong = []
        self.counts = {}
        self.lock = threading.Lock()

    def fails(self, what):
        with self.lock:
            self.wrong.append(what)

    # What a client does. Those that end well answer for what they got.

    def asks(self, r, tag):
        c = Client(self.port)
        for i in range(r.randrange(1, 12)):
            k, mark = r.randrange(ROWS), f"{tag}-{i}"
            c.query(f"SELECT '{mark}', a, b FROM t WHERE a = {k}; SELECT count(*) FROM t WHERE a <= {k}")
            got = fields(c.until_ready())
            if got != [[mark, str(k), f"text {k}"], [str(k + 1)]]:
                self.fails(f"{mark} of {k}: {got}")
        c.socket.sendall(message(b"X"))
        c.close()

    def prepares(self, r, tag):
        c = Client(self.port)
        c.socket.sendall(message(b"P", b"p\0SELECT $1::text, b FROM t WHERE a = $2\0\0\0"))
        numbers = [r.randrange(ROWS) for _ in range(5)]
        for k in numbers:
            values = b"".join(struct.pack("!I", len(v)) + v for v in (tag.encode(), str(k).encode()))
            c.socket.sendall(message(b"B", b"\0p\0" + struct.pack("!HH", 0, 2) + values + struct.pack("!H", 0)) +
                             message(b"E", b"\0" + struct.pack("!I", 0)))
        c.socket.sendall(message(b"S"))
        got = fields(c.until_ready())
        if got != [[tag, f"text {k}"] for k in numbers]:
            self.fails(f"{tag} of {numbers}: {got}")
        c.close()

    def copies(self, r, tag):
        c = Client(self.port)
        rows = r.randrange(2000)
        c.copy_in("CREATE TEMP TABLE c (a INTEGER, b TEXT); COPY c FROM STDIN", [f"{i}\t{tag}\n".encode() for i in range(rows)])
        c.query("SELECT count(*), min(b) FROM c")
        got = fields(c.until_ready())
        if got != [[str(rows), tag if rows else ""]]:
            self.fails(f"copy of {rows} by {tag}: {got}")
        c.close()

    def is_killed(self, r, tag):
        c = Client(self.port)
        c.query(r.choice([LONG, "SELECT * FROM t", "BEGIN; DELETE FROM t; SELECT 1"]))
        time.sleep(r.random() * 0.2)
        c.reset()

    def cancels(self, r, tag):
        c = Client(self.port)
        c.query(LONG)
        time.sleep(r.random() * 0.1)
        # (One that comes before the server has read the query has no effect, as in PostgreSQL.)
        for _ in range(20):
            c.cancel()
            if select.select([c.socket], [], [], 1)[0]:
                break
        got = c.until_ready()
        if not any(kind == b"E" and b"57014" in body or kind == b"C" for kind, body in got):
            self.fails(f"cancelled: {got}")
        c.query(f"SELECT '{tag}'")
        # (A cancel that came late ends this one.)
        got = c.until_ready()
        if fields(got) != [[tag]] and not any(kind == b"E" and b"57014" in body for kind, body in got):
            self.fails(f"after a cancel: {got}")
        c.close()

    def freezes(self, r, tag):
        c = Client(self.port)
        c.query("SELECT a, b, b || b FROM t, range(20)")
        time.sleep(r.random())
        c.close()

    def is_half_open(self, r, tag):
        c = Client(self.port, logs_in=r.random() < 0.5)
        c.socket.sendall(message(b"Q", b"SELECT 1" + b" " * 5000)[:r.randrange(1, 5000)])
        time.sleep(r.random() * 0.5)
        c.reset() if r.random() < 0.5 else c.close()

    def talks_nonsense(self, r, tag):
        c = Client(self.port, logs_in=r.random() < 0.7)
        good = [message(b"Q", b"SELECT 1\0"), message(b"P", b"p\0SELECT $1::text\0\0\1\0\0\0\x19"),
                message(b"B", b"\0p\0\0\0\0\1\0\0\0\1x\0\0"), message(b"D", b"P\0"), message(b"E", b"\0\0\0\0\0"),
                message(b"C", b"Sp\0"), message(b"S"), message(b"H"), message(b"d", b"x"), message(b"f", b"x\0")]
        for _ in range(r.randrange(1, 40)):
            bytes = bytearray(r.choice(good))
            for _ in range(r.randrange(4)):
                bytes[r.randrange(len(bytes))] = r.randrange(256)
            c.socket.sendall(bytes if r.random() < 0.9 else r.randbytes(r.randrange(1, 300)))
        c.close()

    def work(self, number, end):
        r = random.Random(SEED * 1000003 + number)
        acts = [self.asks] * 6 + [self.prepares] * 3 + [self.copies] * 2 + [
            self.is_killed, self.cancels, self.freezes, self.is_half_open, self.talks_nonsense, self.talks_nonsense]
        n = 0
        while time.time() < end:
            act = r.choice(acts)
            n += 1
            try:
                act(r, f"c{number}n{n}")
            except (EOFError, OSError, ServerError) as error:
                # One that behaves well is not cut off.
                if act in (self.asks, self.prepares, self.copies, self.cancels):
                    self.fails(f"{act.__name__}: {error!r}")
            with self.lock:
                self.counts[act.__name__] = self.counts.get(act.__name__, 0) + 1


def resident(process):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{process.pid}/status").read()).group(1)) >> 10


def counted(port):
    """Bytes that the program has allocated itself."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return float(re.search(r"^tessera_memory_bytes (\S+)", answer.read().decode(), re.M).group(1))


def files(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


def settled(process, wanted):
    """The number of open files, once what has ended is gone."""
    end = time.time() + 30
    while files(process) > wanted and time.time() < end:
        time.sleep(0.1)
    return files(process)


def main():
    folder = tempfile.mkdtemp(prefix="tessera-soak-")
    tessera, database = os.path.join(BUILD, "tessera"), os.path.join(folder, "db")
    subprocess.run([tessera, database, "-c", f"CREATE TABLE t AS SELECT x::integer AS a, 'text ' || x AS b FROM range({ROWS}) s(x)"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = open(os.path.join(folder, "log"), "w+")
    process = subprocess.Popen([tessera, "--serve", "127.0.0.1:0", "--metrics", "0", "--socket-folder", "", "--device", "host", "--max-connections",
                                str(CONNECTIONS * 4), database], stderr=log, stdin=subprocess.DEVNULL)
    failed = []
    try:
        said = wait_until_it_says(r":(\d+), /metrics on [^:]*:(\d+)", log.name, process, 20)
        soak = Soak(int(said.group(1)))
        memory, opened = [], []
        Client(soak.port).close()
        least = settled(process, files(process) - 1)
        for part in range(PARTS):
            end = time.time() + SECONDS / PARTS
            threads = [threading.Thread(target=soak.work, args=(part * CONNECTIONS + i, end)) for i in range(CONNECTIONS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            # Connections end when their statements do; files of the table stay open, as many as there are threads.
            opened.append(settled(process, least + 20))
            memory.append(resident(process))
            print(f"part {part + 1} of {PARTS}: {sum(soak.counts.values())} acts, {len(soak.wrong)} wrong, {memory[-1]} MB resident, "
                  f"{counted(int(said.group(2))) / 1e6:.1f} MB allocated, {opened[-1]} files", flush=True)
        held = counted(int(said.group(2)))
        print(f"{SECONDS:.0f} s, {CONNECTIONS} connections, {soak.counts}; MB after each part: {memory}; allocated at the end: {held / 1e6:.1f} MB; files: {least}, then {opened}")
        failed += soak.wrong[:10]
        if process.poll() is not None:
            failed.append(f"the server ended: {process.returncode}")
        if opened[-1] > least + 20:
            failed.append("files stay open")
        if memory[-1] > 1.3 * max(memory[:PARTS // 2]) + 50:
            failed.append("memory grows")
        if held > 64e6:  # (each thread counts to a quarter of a megabyte)
            failed.append("memory is not given back")
        process.send_signal(signal.SIGTERM)
        if process.wait(30) != 0:
            failed.append(f"exit status {process.returncode}")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if failed:
        print("\n".join(map(str, failed)) + "\n" + open(log.name).read()[-2000:])
    shutil.rmtree(folder)
    print(f"{0 if failed else 1} passed, {1 if failed else 0} failed")
    sys.exit(1 if failed else 0)


main()
