"""What the benchmark scripts share: a session that runs one statement at a time, medians, tables.

Start at: Session, Analysis, Table.
"""

import csv
import os
import re
import select
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


# A figure is that of a text that is new, however often the query is run for it.
COMPILE_EACH_RUN = "SET program_cache = 0"


class Failed(Exception):
    """The error of a statement, or why there was no answer."""


class Answer:
    """Rows as CSV lines, and the times of the shell's .timer in milliseconds."""

    TIME = re.compile(r"^Time: ([\d.]+) ms \(compile ([\d.]+)(?: from cache)?, execute ([\d.]+)(?:, kernels ([\d.]+))?\)")

    def __init__(self, rows, timing):
        self.rows = rows
        self.ms, self.compile_ms, self.execute_ms, self.kernel_ms = (float(n or 0) for n in timing.groups())


class Session:
    """One process of tessera. A statement that takes longer than `limit` seconds ends it; the next one starts another."""

    END = re.compile(r"^tessera \d+\.\d+")  # what .version prints

    def __init__(self, build, database, device="host", threads=1, limit=60.0, options=()):
        self.command = [os.path.join(build, "tessera"), "-csv", "--timer", "--no-bail", "--device", device, "--threads",
                        str(threads), *options, "-readonly", database]
        self.limit = limit
        self.on_gpu = device != "host"
        self.settings = [COMPILE_EACH_RUN]  # statements for a new process
        self.process = None

    def set(self, name, value):
        """Sets it now, and in every later process."""
        sql = f"SET {name} = {value}"
        answer = self.run(sql)
        self.settings.append(sql)
        return answer

    def close(self):
        if self.process is None:
            return
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()
        self.process = None

    def forget_columns(self):
        """So that the next query finds no column in a cache."""
        self._start()
        lines = self._lines(".cache clear\n")
        if lines:
            raise Failed(" ".join(lines))

    def _start(self):
        if self.process is not None:
            return
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.pending = b""
        self._lines(".headers off\n")
        for setting in self.settings:
            self._lines(setting + ";\n")

    def run(self, sql):
        """The answer. Raises Failed with the error in one line."""
        self._start()
        lines = self._lines(sql + ";\n")
        errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
        if errors:
            raise Failed(errors[0])
        timing = next((m for m in map(Answer.TIME.match, lines) if m), None)
        if timing is None:
            raise Failed("no answer: " + " ".join(lines))
        return Answer([line for line in lines if not Answer.TIME.match(line)], timing)

    def _lines(self, text):
        self.process.stdin.write((text + ".version\n").encode())
        self.process.stdin.flush()
        deadline = time.monotonic() + self.limit
        lines = []
        while True:
            while b"\n" not in self.pending:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                    self.close()
                    raise Failed(f"more than {self.limit:g} s")
                piece = os.read(self.process.stdout.fileno(), 1 << 16)
                if not piece:
                    self.close()
                    raise Failed("the program ended: " + " ".join(lines))
                self.pending += piece
            line, self.pending = self.pending.split(b"\n", 1)
            line = line.decode()
            if self.END.match(line):
                return lines
            lines.append(line)


class MemorySession(Session):
    """A session in memory that may write, and makes its tables by `statements` whenever its process starts."""

    LOADING = 600  # seconds

    def __init__(self, build, statements, threads, limit):
        super().__init__(build, ":memory:", threads=threads, limit=limit)
        self.command.remove("-readonly")
        self.statements = statements

    def _start(self):
        if self.process is None:
            limit, self.limit = self.limit, self.LOADING
            super()._start()
            lost = [line for statement in self.statements for line in self._lines(statement + ";\n") if line.startswith("ERROR")]
            self.limit = limit
            if lost:
                raise Failed(lost[0])


def rows_of(build, program, *arguments):
    """What a program of the build prints as CSV."""
    done = subprocess.run([os.path.join(build, program), *arguments], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f"{program}: status {done.returncode}")
    return csv.DictReader(done.stdout.splitlines())


def make_database(build, database, script, like=None):
    """The database that the statements of `script` make, after what is in the database `like`. It has its name when it is whole."""
    part = database + ".part"
    os.makedirs(os.path.dirname(part), exist_ok=True)
    subprocess.run(["rm", "-rf", part], check=True)
    if like is not None:
        subprocess.run(["cp", "-r", like, part], check=True)
    done = subprocess.run([os.path.join(build, "tessera"), "-bail", "--device", "host", part], input="\n".join(script), text=True,
                          stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failed(f"making {database}: status {done.returncode}")
    os.rename(part, database)


def median(values):
    return statistics.median(values)


def hot_runs(first_ms, runs):
    """How often to repeat a query that took `first_ms`: long queries vary little and cost much."""
    return max(1, min(runs, int(10_000 / max(first_ms, 0.001))))


PINNING_SECONDS = float(os.environ.get("PINNING_SECONDS") or 0.5)


def measure_cold(session, sql, runs):
    """The same, with no column in a cache when a run begins. The first run reads the files and does not count, nor does, on a
    GPU, the second one, after which it has time to pin what came again (PINNING_SECONDS)."""
    first = session.run(sql)
    answers = []
    if session.on_gpu:
        session.forget_columns()
        session.run(sql)
        time.sleep(PINNING_SECONDS)
    for _ in range(hot_runs(first.ms, runs)):
        session.forget_columns()
        answers.append(session.run(sql))
        if not same(first.rows, answers[-1].rows):
            raise Failed(f"{sql}: other rows without a column in the cache")
    return first.rows, median([a.ms for a in answers]), median([a.kernel_ms for a in answers])


def measure(session, sql, runs):
    """The rows, and the medians of hot runs: (rows, ms, kernel_ms)."""
    first = session.run(sql)
    if first.ms > session.limit * 500:  # another run might not come back
        return first.rows, first.ms, first.kernel_ms
    answers = [session.run(sql) for _ in range(hot_runs(first.ms, runs))]
    return first.rows, median([a.ms for a in answers]), median([a.kernel_ms for a in answers])


class Section:
    """A line of EXPLAIN (ANALYZE, PROGRAM)'s table."""

    def __init__(self, cells):
        self.label, self.on_gpu = cells["section"], cells["where"] == "gpu"
        self.rows_in, self.rows_out = int(cells["rows in"]), int(cells["rows out"])
        self.joined_ms = []
        self.ms, self.kernel_ms = float(cells["ms"]), float(cells.get("kernel ms") or 0)
        self.bytes = size(cells["bytes"])
        # Of a GPU: bytes that crossed the link, that the kernel read whole, and where rows needed them.
        self.transferred, self.staged, self.on_demand = (
            size(cells.get(name, "").lstrip("~") or "0 B") for name in ("transferred", "staged", "on demand"))
        self.joined = []  # rows after each of its joins, in their order
        self.tablets = int(cells["tablets"]) - int(cells["skipped"])
        self.chunks = 0  # of these tablets' columns that it reads


class Analysis:
    """What EXPLAIN (ANALYZE, PROGRAM) says of a statement: its sections, and the pairs and child grids of nested-loop joins."""

    PAIRS = re.compile(r": (\d+) pairs tested(?:, (\d+) left out)?(?:, (\d+) child grids)?$")

    def __init__(self, session, sql):
        lines = session.run("EXPLAIN (ANALYZE, PROGRAM) " + sql).rows
        head = next(i for i, line in enumerate(lines) if line.startswith("where "))
        # Columns are as wide as the dashes below their names; the last column is open.
        spans = [m.span() for m in re.finditer(r"-+", lines[head + 1])]
        spans[-1] = (spans[-1][0], None)
        names = re.split(r" {2,}", lines[head])
        self.sections = []
        for line in lines[head + 2:]:
            if line[:6].rstrip() not in ("gpu", "host"):
                break
            self.sections.append(Section(dict(zip(names, (line[a:b].strip() for a, b in spans)))))
        blocks = [i for i, line in enumerate(lines) if line.startswith("-- columns of section ")]
        for section, first in zip((s for s in self.sections if s.tablets > 0), blocks):
            columns = [line for line in lines[first + 3:] if re.match(r"c\d+ ", line)]
            end = next((i for i, line in enumerate(columns) if line.split()[0] != f"c{i}"), len(columns))
            section.chunks = section.tablets * end
        for section in self.sections:
            place = re.compile(re.escape(section.label) + r": \S+ \S+ of its columns stayed on the host, about (\S+ \S+) of it")
            section.in_place = sum(size(m[1]) for m in map(place.match, lines) if m)
        for section in self.sections:
            head = section.label + ": rows after its joins: "
            for line in lines:
                if line.startswith(head):
                    section.joined = [int(n) for n in re.findall(r"(\d+) \(", line[len(head):])]
                    section.joined_ms = [float(ms) for ms in re.findall(r", ([0-9.]+) ms\)", line[len(head):])]
        products = [m for m in map(self.PAIRS.search, lines) if m]
        self.tested, self.left_out, self.child_grids = (sum(int(m[i] or 0) for m in products) for i in (1, 2, 3))
        self.bytes = sum(section.bytes for section in self.sections)


def size(text):
    """Bytes of "7.17 KB"."""
    number, unit = text.split()
    return float(number) * 1000 ** ("B", "KB", "MB", "GB", "TB", "PB").index(unit)


def same(a, b):
    """Whether two lists of CSV lines are the same rows; floating-point values to within 1e-9."""
    def near(x, y):
        if x == y:
            return True
        try:
            x, y = float(x), float(y)
        except ValueError:
            return False
        return abs(x - y) <= 1e-9 * max(abs(x), abs(y), 1)
    if len(a) != len(b):
        return False
    return all(len(x) == len(y) and all(map(near, x, y)) for x, y in
               zip((line.split(",") for line in a), (line.split(",") for line in b)))


class Table:
    """A table whose rows are printed as they come. Columns: (name, width); text is aligned left, numbers right."""

    def __init__(self, title, *columns):
        self.columns = columns
        print(f"\n{title}\n")
        print("  ".join(name.ljust(-width) if width < 0 else name.rjust(width) for name, width in self._widths()))
        sys.stdout.flush()

    def _widths(self):
        return [(name, -max(-width, len(name)) if width < 0 else max(width, len(name))) for name, width in self.columns]

    def row(self, *values):
        cells = []
        for (_, width), value in zip(self._widths(), values):
            text = "" if value is None else value if isinstance(value, str) else f"{value:,.{digits(value)}f}"
            cells.append(text.ljust(-width) if width < 0 else text.rjust(width))
        print("  ".join(cells).rstrip())
        sys.stdout.flush()


def digits(value):
    """The number of decimal places that shows three or four significant digits."""
    if isinstance(value, int):
        return 0
    size = abs(value)
    return 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3


class CsvFile:
    """One file for the figures of all parts, if a name is given."""

    def __init__(self, path, columns):
        self.columns = columns
        self.file = open(path, "w", newline="") if path else None
        if self.file:
            self.writer = csv.writer(self.file, lineterminator="\n")
            self.writer.writerow(columns)

    def row(self, **values):
        if self.file:
            self.writer.writerow([values.get(c, "") for c in self.columns])
            self.file.flush()


def environment(name, default):
    """The value of an environment variable, or `default` if it is unset or empty."""
    return os.environ.get(name) or default


def generate(build, name, program, arguments, statements=()):
    """The data and database of that name under BUILD/bench: made once, and again when the generator or the file format
    changes. `statements` are run after loading.

    Returns the two directories (text files, database).
    """
    base = os.path.join(build, "bench", name)
    data, database = base + ".data", base + ".tessera"
    sources = ["tablet/chunk/tablet_format.h"] + sorted(
        os.path.join("data_gen", f) for f in os.listdir(os.path.join(ROOT, "data_gen"))
        if f.endswith(".h") or f in (program + ".cc", "table_files.cc"))
    recipe = "\n".join([" ".join([program, *arguments]), *statements,
                        "".join(open(os.path.join(ROOT, f)).read() for f in sources)])
    stamp = base + ".recipe"
    if os.path.exists(stamp) and open(stamp).read() == recipe and os.path.isdir(database):
        return data, database
    print(f"Generating {name}: {program} {' '.join(arguments)}", file=sys.stderr)
    subprocess.run(["rm", "-rf", stamp, data, database, base + ".duckdb"], check=True)
    os.makedirs(data)
    subprocess.run([os.path.join(build, program), "--out", data, *arguments], check=True, stdout=sys.stderr)
    load = os.path.join(data, "load.sql")
    with open(load, "w") as out:
        out.write(open(os.path.join(data, "schema.sql")).read())
        out.writelines(statement + ";\n" for statement in statements)
    subprocess.run([os.path.join(build, "tessera"), "-bail", "--device", "host", "-f", load, database], check=True)
    with open(stamp, "w") as out:
        out.write(recipe)
    return data, database


class Ranks:
    """Jobs on ranks of this build, started by MPIRUN. Start at: run."""

    def __init__(self, build, device, threads):
        if not os.path.exists(os.path.join(build, "tessera_mpi.so")):
            sys.exit("this build has no MPI: sudo apt-get install libopenmpi-dev openmpi-bin, then make")
        if os.geteuid() == 0:  # mpirun refuses root unless it is told twice
            os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.launcher = shlex.split(environment("MPIRUN", "mpirun --oversubscribe --bind-to none"))
        self.build, self.options = build, ["--device", device, "--threads", str(threads)]

    def run(self, ranks, database, statements, variables=None):
        """Runs the statements, which end in semicolons, with these environment variables. Returns the lines of --stats csv:
        those about whole statements, and those about sections. Raises Failed."""
        with tempfile.TemporaryDirectory() as scratch:
            script, statistics_file = os.path.join(scratch, "q.sql"), os.path.join(scratch, "statistics")
            with open(script, "w") as out:
                # (A launcher forwards standard output in pieces of 4 KB, which takes longer than to make the rows.)
                out.write("\n".join([".output /dev/null", COMPILE_EACH_RUN + ";", *statements]))
            command = [*self.launcher, "-n", str(ranks), os.path.join(self.build, "tessera"), "-csv", "-readonly", "-bail",
                       *self.options, "--stats-file", statistics_file, "-f", script, database]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True, env={**os.environ, **(variables or {})})
            if done.returncode != 0:
                raise Failed(f"{ranks} ranks: status {done.returncode}\n{done.stderr}")
            with open(statistics_file, newline="") as file:
                lines = list(csv.DictReader(file))
            return [line for line in lines if line["section"] == ""], [line for line in lines if line["section"] != ""]


class OtherLoad:
    """How much of the machine other processes took between two moments: figures of a busy machine are worth nothing."""

    def __init__(self):
        self.start = self._now()

    @staticmethod
    def _now():
        """Processor seconds of all processes; those of this one and its ended children; and the time."""
        with open("/proc/stat") as file:
            ticks = [int(n) for n in file.readline().split()[1:9]]
        times = os.times()
        everybody = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")  # all but idle and iowait
        return everybody, sum(times[:4]), times.elapsed

    def text(self):
        everybody, ours, now = (b - a for a, b in zip(self.start, self._now()))
        others = max(0.0, everybody - ours) / max(now, 0.001)
        return f"other processes took {others:.2f} of {os.cpu_count()} processors" + (
            ": the machine was busy, read the ratios" if others > 0.1 else "")


def run_parts(doc, make, default, more=""):
    """A benchmark's main program: runs the methods of make(BUILD_DIR) that PARTS names, `default` if it is not set. There are
    those of `default` and of `more`."""
    if len(sys.argv) != 2:
        sys.exit(doc)
    script = "bench/" + os.path.basename(sys.argv[0])
    bench = make(sys.argv[1])
    known = (default + " " + more).split()
    parts = environment("PARTS", default).split()
    for part in parts:
        if part not in known:
            sys.exit(f"{script}: PARTS has {', '.join(known[:-1])} and {known[-1]}, not '{part}'")
    for part in parts:
        load = OtherLoad()
        try:
            getattr(bench, part)()
        except Failed as error:
            sys.exit(f"{script}: {error}")
        print("\n" + load.text())
