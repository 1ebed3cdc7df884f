#!/usr/bin/env python3
"""The ledger of cost: counts that do not depend on how fast or how busy a machine is, beside those in the tree.

    tests/ledger/ledger.py BUILD_DIR compare [gpu]   what rose by more than 2 % is a failure; what fell is named
    tests/ledger/ledger.py BUILD_DIR record [gpu]    writes the numbers of this build into the tree

The numbers of a version of g++ are in tests/ledger/g++-VERSION.txt, in sections. A row is a name, a tab and its numbers. What
cannot be counted here (no valgrind, another nvcc, no emulator) is not compared, and stays in the file as it is. With `gpu`
only the calls of CUDA on this machine's GPU are counted, without it all the rest.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

import device_code

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TOLERANCE = 1.02
COMPRESSIONS = ("none", "balanced", "ratio")
TABLES = {"ssb": ["customer", "supplier", "part", "date", "lineorder"],
          "tpch": ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]}

INSTRUCTIONS = "host instructions"
ALLOCATIONS = "heap allocations of a query"
BYTES = "bytes of tables, scale 0.01"
KERNELS = "kernels: instructions, registers, stack, shared memory"
EMULATED = "emulated GPU: calls of CUDA, synchronisations and launches of a query"
ON_GPU = "GPU: calls of CUDA, synchronisations and launches of a query"

# Neither the tree's path nor the environment are to be seen in the numbers: programs are named from the folder that they
# run in.
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "TZ": "UTC"}


class NotCounted(Exception):
    """Why a section has no numbers here."""


class Counter:
    """Counts what a build does, in a folder of its own in it."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.folder = os.path.join(self.build, "ledger_data")
        self.sources = os.path.relpath(ROOT, self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def run(self, program, *arguments, prefix=(), environment=None):
        """What it prints. Addresses are the same in each run."""
        command = [*prefix, os.path.join("..", program), *arguments]
        if shutil.which("setarch"):
            command = ["setarch", "-R", *command]
        done = subprocess.run(command, cwd=self.folder, env=environment or ENVIRONMENT, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def compiler(self):
        return self.run("ledger", "compiler").strip()

    def load(self, benchmark, compression):
        """The directory of a new database. The default compression is that of the measured queries."""
        database = benchmark + (".tessera" if compression == "balanced" else f"-{compression}.tessera")
        if os.path.isdir(os.path.join(self.folder, database)):
            return database
        if not os.path.isdir(os.path.join(self.folder, benchmark)):
            self.run(benchmark + "_gen", "--scale", "0.01", "--out", benchmark)
        with open(os.path.join(ROOT, "data_gen", benchmark, "schema.sql"), encoding="utf-8") as file:
            schema = file.read()
        with open(os.path.join(self.folder, "load.sql"), "w", encoding="utf-8") as script:
            print(f"SET compression = {compression};", schema, sep="\n", file=script)
            for table in TABLES[benchmark]:
                print(f"COPY {table} FROM '{benchmark}/{table}.tbl' (FORMAT csv, DELIMITER '|');", file=script)
        self.run("tessera", "-bail", "--device", "host", "--threads", "1", "-f", "load.sql", database)
        return database

    def bytes(self):
        sums = {}
        for benchmark in TABLES:
            for compression in COMPRESSIONS:
                files = glob.glob(os.path.join(self.folder, self.load(benchmark, compression), "**"), recursive=True)
                sums[f"{benchmark} {compression}"] = [
                    sum(os.path.getsize(name) for name in files
                        if os.path.isfile(name) and not os.path.basename(name).startswith("catalog"))]
        return sums

    def instructions(self):
        valgrind = shutil.which("valgrind")
        if valgrind is None:
            raise NotCounted("no valgrind here")
        out = os.path.join(self.folder, "callgrind")
        lines = self.run("ledger", "instructions", self.sources, prefix=[
            valgrind, "--quiet", "--tool=callgrind", "--dump-before=LedgerMark", f"--callgrind-out-file={out}"])
        found = {}
        # Of each two marks: the first ends what lies between, the second the work.
        for i, line in enumerate(lines.splitlines()):
            times, name = line.split(" ", 1)
            with open(f"{out}.{2 * i + 2}", encoding="utf-8") as dump:
                total = int(re.search(r"^(?:summary|totals): (\d+)", dump.read(), re.M).group(1))
            found[name] = [total // int(times)]
        return found

    def allocations(self):
        lines = [line.split() for line in self.run("ledger", "allocations", self.sources).splitlines()]
        return {f"{benchmark} {query}": [int(number)] for benchmark, query, number in lines}

    def kernels(self):
        found = device_code.kernels(os.path.join(self.build, "libtessera.a"))
        if not found:
            raise NotCounted("built without nvcc")
        return {f"sm_{arch} {name}": list(kernel) for (arch, name), kernel in sorted(found.items())}

    def calls(self, program):
        for benchmark in TABLES:
            self.load(benchmark, "balanced")
        environment = None if "emulated" in program else dict(os.environ)
        rows = [line.split() for line in self.run(program, self.sources, environment=environment).splitlines()]
        if not rows:
            raise NotCounted("no GPU here")
        return {f"{benchmark} {query}": [int(number) for number in numbers] for benchmark, query, *numbers in rows}

    def emulated(self):
        if not os.path.exists(os.path.join(self.build, "emulated", "ledger_gpu")):
            raise NotCounted("the emulator was not built")
        return self.calls("emulated/ledger_gpu")

    def on_gpu(self):
        if not os.path.exists(os.path.join(self.build, "ledger_gpu")):
            raise NotCounted("built without nvcc")
        return self.calls("ledger_gpu")

    def nvcc(self):
        """The version of the build's nvcc, as in "13.0"; empty if it was built without."""
        with open(os.path.join(self.build, "nvcc_flags"), encoding="utf-8") as file:
            program = file.read().split(" ", 1)[0]
        if "nvcc" not in program:
            return ""
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        release = re.search(r"release ([\d.]+)", version)
        return release.group(1) if release else ""


def read(path):
    """(nvcc's version, {section: {name: numbers}})"""
    nvcc, sections = "", {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file.read().splitlines():
                if line.startswith("nvcc "):
                    nvcc = line[5:]
                elif line.startswith("["):
                    section = sections.setdefault(line[1:-1], {})
                elif "\t" in line:
                    name, numbers = line.split("\t")
                    section[name] = [int(number) for number in numbers.split()]
    return nvcc, sections


def write(path, compiler, nvcc, sections):
    with open(path, "w", encoding="utf-8") as file:
        print(f"Written by `make ledger`, see tests/ledger/ledger.py.\n{compiler}\nnvcc {nvcc}", file=file)
        for section in (INSTRUCTIONS, ALLOCATIONS, BYTES, KERNELS, EMULATED, ON_GPU):
            if section in sections:
                print(f"\n[{section}]", file=file)
                for name, numbers in sections[section].items():
                    print(name, " ".join(map(str, numbers)), sep="\t", file=file)


def change(before, now):
    """As in "120 -> 130 (+8.3 %)"."""
    return ", ".join(f"{a} -> {b}" + (f" ({(b - a) / a * 100:+.1f} %)" if a else "")
                     for a, b in zip(before, now) if a != b)


def compare(section, before, now):
    """Prints what differs. Returns how many rows passed and failed."""
    failed = 0
    for name, numbers in now.items():
        what = f"{section.split(':')[0]}, {name}"
        old = before.get(name)
        if old is None:
            print(f"FAILED: {what}: {numbers} is not in the ledger; `make ledger` records it")
            failed += 1
        elif any(b > a * TOLERANCE for a, b in zip(old, numbers)):
            print(f"FAILED: {what}: {change(old, numbers)}; if that is meant, `make ledger` records it, and the commit says why")
            failed += 1
        elif any(b * TOLERANCE < a for a, b in zip(old, numbers)):
            print(f"fell: {what}: {change(old, numbers)}; `make ledger` would record it")
    return len(now) - failed, failed


def uncounted_calls():
    """What kernels/ calls and ledger_gpu.cc does not know."""
    def words(pattern, *globs):
        found = set()
        for name in (n for g in globs for n in glob.glob(os.path.join(ROOT, g), recursive=True)):
            with open(name, encoding="utf-8") as file:
                found.update(re.findall(pattern, file.read()))
        return found
    known = words(r"\b(cuda[A-Z]\w+)", "tests/ledger/ledger_gpu.cc") | {"cudaGetErrorName", "cudaGetErrorString"}
    return words(r"\b(cuda[A-Z]\w+)\(", "kernels/**/*.cc", "kernels/**/*.cu", "kernels/**/*.h") - known


def main():
    build, mode = sys.argv[1:3]
    counter = Counter(build)
    compiler = counter.compiler()
    path = os.path.join(HERE, compiler.replace(" ", "-", 1) + ".txt")
    nvcc, sections = read(path)
    if mode == "compare" and not sections:
        print(f"[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] ledger: not compared: no numbers of {compiler}")
        return 0
    counts = {BYTES: counter.bytes, INSTRUCTIONS: counter.instructions, ALLOCATIONS: counter.allocations,
              KERNELS: counter.kernels, EMULATED: counter.emulated}
    if "gpu" in sys.argv[3:]:
        counts = {ON_GPU: counter.on_gpu}
    passed, failed, skipped = 0, 0, []
    if uncounted := uncounted_calls():
        print(f"FAILED: tests/ledger/ledger_gpu.cc does not count {', '.join(sorted(uncounted))}")
        failed += 1
    for section, count in counts.items():
        try:
            now = count()
            if section == KERNELS and mode == "compare" and counter.nvcc() != nvcc:
                raise NotCounted(f"the numbers are of nvcc {nvcc}")
        except NotCounted as why:
            skipped.append(f"{section.split(':')[0]}: {why}")
            continue
        before = sections.get(section, {})
        if mode == "compare" and not before:
            skipped.append(f"{section.split(':')[0]}: no numbers")
            continue
        if section == KERNELS:  # (Perhaps for other GPUs than the file's.)
            built = {name.split()[0] for name in now}
            others = {name: row for name, row in before.items() if name.split()[0] not in built}
            if mode == "compare" and built.isdisjoint(name.split()[0] for name in before):
                skipped.append(f"kernels: no numbers of {' '.join(sorted(built))}")
                continue
        if mode == "record":
            for name, row in now.items():
                if before.get(name, row) != row:
                    print(f"{section.split(':')[0]}, {name}: {change(before[name], row)}")
            if section == KERNELS:
                now = {**(others if counter.nvcc() == nvcc else {}), **now}
                nvcc = counter.nvcc()
            sections[section] = now
        else:
            good, bad = compare(section, before, now)
            passed += good
            failed += bad
    if mode == "record":
        write(path, compiler, nvcc, sections)
        print(f"Written to {os.path.relpath(path)}" + "".join(f"\nNot counted: {why}" for why in skipped))
        return 0
    if skipped:
        print(f"[  SKIPPED ] {len(skipped)} tests, listed below:\n[  SKIPPED ] ledger: not compared: {'; '.join(skipped)}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
