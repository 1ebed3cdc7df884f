#!/usr/bin/env python3
"""Columns on their way to a GPU, after NEC's paper on streaming compressed columns: pieces, ways, bytes a value. And from
the disk.

    bench/stream.py BUILD_DIR           (make bench-stream)

Environment variables choose what to do. Their defaults:

    PARTS="pieces widths"  also: disk, ssb
    SCALE=20               of ssb
    ROWS=100000000         values of a column
    PIECES="65536 262144 1048576 4194304 16777216 67108864"
    RUNS=5                 runs of a query, after one that reads the files
    THREADS=               of the host; by default all processors
    GPU_MEMORY=            budget on the GPU, as --gpu-memory takes it
    CSV=                   a file for all figures
    OUT=BUILD_DIR/bench/stream            pieces.svg, widths.svg

pieces: build/transfer_bench, which has neither SQL nor tablets: what a copy in pieces of that size moves (transfer), with a
kernel after each piece (sync_total), beside the next one (stream_total), from memory that is not pinned, and read by the
kernel over the link; beside it Tessera's own scan of a column of 4 bytes in pieces of that size, streamed and piece by piece.
widths: a scan of a column of random values of 4, 3, 2 and 1 bytes: the host with one thread and with all, the GPU with each
SET transfer, without a column in its cache, and with all of them there. The column of 3 bytes is packed, the others are not.
disk: a scan of a column of 4 bytes by a new process, with one thread and with all, none of whose file is in memory, beside
the same files read by as many threads past the page cache (build/disk_bench). It needs no GPU.
ssb: the Star Schema Benchmark in a GPU memory of 1 GB (GPU_MEMORY), stored as none, balanced and ratio, without a column in the cache.
Its rate is that of the columns of lineorder, had they crossed the link with 4 bytes a value, beside a copy of pinned memory.
"""

import os
import subprocess
import sys

import plot
from measure import (ROOT, CsvFile, Failed, OtherLoad, Session, Table, environment, make_database, measure, measure_cold, median, rows_of,
                     same)
from ranks import QUERIES, statement_of

WAYS = ["transfer", "sync_total", "stream_total", "pageable_total", "zerocopy_total"]
TRANSFERS = ["stream", "sync", "pageable", "zerocopy"]
WIDTHS = [4, 3, 2, 1]
GOALS = ["none", "balanced", "ratio"]
SSB_COLUMNS = {"q1": 4, "q2": 4, "q3": 4, "q4": 6}  # of lineorder, by flight
BATCH = 10_000_000  # rows of an INSERT
# Numbers in no order of 0, 1, 2 ...; a product, because multiples of a constant have differences that compress.
MIXED = "SELECT (y % 46337) * (y / 46337 % 46349) + y AS x FROM (SELECT i * 2654435761 % 4294967291 AS y FROM range({}, {}) AS r(i)) a"


def label_of(piece):
    return f"{piece >> 20} MiB" if piece >= 1 << 20 else f"{piece >> 10} KiB"


class Stream:
    def __init__(self, build):
        self.build = build
        self.rows = int(environment("ROWS", "100000000"))
        self.pieces = [int(p) for p in environment("PIECES", "65536 262144 1048576 4194304 16777216 67108864").split()]
        self.runs = int(environment("RUNS", "5"))
        self.threads = environment("THREADS", str(os.cpu_count()))
        memory = environment("GPU_MEMORY", "")
        self.gpu_options = ["--gpu-memory", memory] if memory else []
        self.out = environment("OUT", os.path.join(build, "bench", "stream"))
        os.makedirs(self.out, exist_ok=True)
        self.csv = CsvFile(environment("CSV", ""), ["part", "name", "piece", "width", "ms", "gb_per_s", "values_per_s"])

    def database(self, name="stream", widths=WIDTHS):
        """A table for each width, made once."""
        database = os.path.join(self.build, "bench", f"{name}-{self.rows}.tessera")
        if os.path.isdir(database):
            return database
        print(f"Making {self.rows:,} rows for each width", file=sys.stderr)
        script = []
        for width in widths:
            script += [f"SET compression = {'ratio' if width == 3 else 'none'};", f"CREATE TABLE v{width} (v BIGINT NOT NULL);"]
            for first in range(0, self.rows, BATCH):
                last = min(self.rows, first + BATCH)
                script.append(f"INSERT INTO v{width} SELECT x % {256 ** width - 1} FROM ({MIXED.format(first, last)}) b;")
        make_database(self.build, database, script)
        return database

    def session(self, device, threads):
        return Session(self.build, self.database(), device, threads, 600, self.gpu_options if device == "gpu" else ())

    @staticmethod
    def query(width):
        return f"SELECT count(*), sum(v) FROM v{width} WHERE v < {256 ** width // 2}"

    def record(self, **values):
        self.csv.row(**values)

    def pieces_part(self):
        rows = rows_of(self.build, "transfer_bench", "--bytes", str(4 * self.rows), "--pieces", " ".join(map(str, self.pieces)))
        rates = {(row["way"], int(row["piece"])): float(row["gb_per_s"]) for row in rows}
        session = self.session("gpu", self.threads)
        print(f"A copy on the device reads and writes {rates['device', 0]:,.0f} GB/s.")
        table = Table(f"{4 * self.rows / 1e6:,.0f} MB in pieces, GB/s", ("piece", -8), *((way, 8) for way in WAYS), ("Tessera sync", 12),
                      ("Tessera stream", 14))
        own = {}
        for piece in self.pieces:
            session.run(f"SET transfer_piece = {piece}")
            for transfer in ("sync", "stream"):
                session.run(f"SET transfer = {transfer}")
                _, ms, _ = measure_cold(session, self.query(4), self.runs)
                own[transfer, piece] = 4 * self.rows / ms * 1e-6
                self.record(part="pieces", name="tessera_" + transfer, piece=piece, ms=ms, gb_per_s=own[transfer, piece])
            table.row(label_of(piece), *(rates[way, piece] for way in WAYS), own["sync", piece], own["stream", piece])
            for way in WAYS:
                self.record(part="pieces", name=way, piece=piece, gb_per_s=rates[way, piece])
        session.close()
        best = max(rates["transfer", piece] for piece in self.pieces)
        print(f"Tessera's best stream is {100 * max(own['stream', p] for p in self.pieces) / best:.1f} % of the best pinned copy")
        series = {way: {piece: rates[way, piece] for piece in self.pieces} for way in WAYS}
        series |= {f"Tessera {t}": {piece: own[t, piece] for piece in self.pieces} for t in ("sync", "stream")}
        plot.lines(os.path.join(self.out, "pieces.svg"), "GB/s by size of a piece", "piece", series, label_of)

    def widths_part(self):
        names = ["host, 1 thread", f"host, {self.threads} threads", *(f"GPU, {t}" for t in TRANSFERS), "GPU, cached"]
        table = Table(f"{self.rows:,} values, M values/s", ("bytes a value", -13), *((name, 8) for name in names))
        sessions = {names[0]: self.session("host", 1), names[1]: self.session("host", self.threads),
                    "gpu": self.session("gpu", self.threads)}
        groups = {}
        for width in WIDTHS:
            sql = self.query(width)
            rates, expected = [], None
            for name in names:
                session = sessions.get(name) or sessions["gpu"]
                if name == "GPU, cached":
                    session.run("SET transfer = stream")
                    rows, ms, _ = measure(session, sql, self.runs)
                elif name == "GPU, zerocopy":  # what kernels read is in pinned memory before the first run that counts
                    session.run("SET transfer = zerocopy")
                    rows, ms, _ = measure(session, sql, self.runs)
                elif session is sessions["gpu"]:
                    session.run(f"SET transfer = {name.removeprefix('GPU, ')}")
                    rows, ms, _ = measure_cold(session, sql, self.runs)
                else:
                    rows, ms, _ = measure(session, sql, self.runs)
                if expected is not None and not same(expected, rows):
                    raise Failed(f"{sql}: {name} gives {rows}, not {expected}")
                expected = rows
                rates.append(self.rows / ms * 1e-3)
                self.record(part="widths", name=name, width=width, ms=ms, gb_per_s=width * self.rows / ms * 1e-6,
                            values_per_s=self.rows / ms * 1e3)
            table.row(str(width), *rates)
            groups[f"{width} bytes"] = dict(zip(names, rates))
        for session in sessions.values():
            session.close()
        plot.bars(os.path.join(self.out, "widths.svg"), "M values/s by bytes of a value", groups)

    def direct_read(self, files, threads):
        """Milliseconds that the disk takes."""
        return float(next(rows_of(self.build, "disk_bench", "--threads", str(threads), *files))["ms"])

    def disk_part(self):
        database = self.database("disk", [4])
        files = sorted(os.path.join(database, name) for name in os.listdir(database) if name.startswith("tablet-"))
        size = sum(map(os.path.getsize, files))
        table = Table(f"{size / 1e6:,.0f} MB from the disk, medians of {self.runs} runs, alternately", ("threads", 8), ("O_DIRECT ms", 12),
                      ("GB/s", 8), ("cold scan ms", 12), ("GB/s", 8), ("% of O_DIRECT", 14), ("hot scan ms", 12))
        expected = None
        for threads in dict.fromkeys(["1", self.threads]):
            times = {"direct": [], "cold": [], "hot": []}
            for _ in range(self.runs):
                forget_files(files)
                times["direct"].append(self.direct_read(files, threads))
                forget_files(files)
                session = Session(self.build, database, "host", threads, 600)
                for name in ("cold", "hot"):
                    answer = session.run(self.query(4))
                    times[name].append(answer.ms)
                    if expected is not None and not same(expected, answer.rows):
                        raise Failed(f"{self.query(4)}: {name} gives {answer.rows}, not {expected}")
                    expected = answer.rows
                session.close()
            direct, cold, hot = (median(times[name]) for name in ("direct", "cold", "hot"))
            table.row(int(threads), direct, size / direct * 1e-6, cold, size / cold * 1e-6, 100 * direct / cold, hot)
            for name, ms in (("direct", direct), ("cold", cold), ("hot", hot)):
                self.record(part="disk", name=f"{name}, {threads} threads", width=4, ms=ms, gb_per_s=size / ms * 1e-6,
                            values_per_s=self.rows / ms * 1e3)

    def link_rate(self):
        rows = rows_of(self.build, "transfer_bench", "--bytes", str(1 << 30), "--pieces", str(4 << 20))
        return next(float(row["gb_per_s"]) for row in rows if row["way"] == "transfer")

    def ssb_part(self):
        scale = environment("SCALE", "20")
        sessions, rows = {}, 0
        for goal in GOALS:
            done = subprocess.run(["bench/queries.sh", "ssb", "prepare", self.build, scale], check=True, stdout=subprocess.PIPE,
                                  text=True, env={**os.environ, "COMPRESSION": goal})
            options = self.gpu_options or ["--gpu-memory", "1g"]
            sessions[goal] = Session(self.build, done.stdout.strip(), "gpu", self.threads, 600, options)
            rows = int(sessions[goal].run("SELECT count(*) FROM lineorder").rows[0])
        link = self.link_rate()
        table = Table(f"SSB, scale {scale}, streamed, ms; a pinned copy moves {link:.1f} GB/s", ("query", -6), *((g, 9) for g in GOALS))
        sums, plain = dict.fromkeys(GOALS, 0.0), 0
        for name in QUERIES:
            size = 4 * rows * SSB_COLUMNS[name[:2]]
            plain += size
            times, expected = [], None
            for goal, session in sessions.items():
                answer, ms, _ = measure_cold(session, statement_of(name), self.runs)
                if expected is not None and not same(expected, answer):
                    raise Failed(f"{name}: {goal} gives other rows")
                expected = answer
                times.append(ms)
                sums[goal] += ms
                self.record(part="ssb", name=f"{name} {goal}", ms=ms, gb_per_s=size / ms * 1e-6)
            table.row(name, *times)
        table.row("sum", *sums.values())
        table.row("GB/s", *(plain / ms * 1e-6 for ms in sums.values()))
        table.row("link", *(plain / ms * 1e-6 / link for ms in sums.values()))
        for session in sessions.values():
            session.close()


def forget_files(files):
    """So that nothing of them is in memory. REQUIRES: no process maps them."""
    for path in files:
        with open(path, "rb") as file:
            os.fsync(file.fileno())  # only what is on the disk can go
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.chdir(ROOT)
    bench = Stream(os.path.abspath(sys.argv[1]))
    parts = environment("PARTS", "pieces widths").split()
    for part in parts:
        if part not in ("pieces", "widths", "disk", "ssb"):
            sys.exit(f"bench/stream.py: PARTS has pieces, widths, disk and ssb, not '{part}'")
    for part in parts:
        load = OtherLoad()
        try:
            getattr(bench, part + "_part")()
        except Failed as failed:
            sys.exit(f"bench/stream.py: {failed}")
        print("\n" + load.text())


if __name__ == "__main__":
    main()
