#!/usr/bin/env python3
"""The benchmark scripts on columns and streams run to their ends, on tiny data: bench/compression.py and the disk part of
bench/stream.py on the host, the rest of it and bench/model.py on the emulated GPU; also bench/insert.py, bench/server.py, the queries of
ClickBench's shape and bench/groupby.py beside other engines, and the jobs of bench/scaling/slurm, without Slurm.
What they print is no figure; that rows are equal in all ways is what they check.

    tests/bench/bench_test.py BUILD_DIR [TEST...]

Ends with "N passed, N failed".
"""

import csv
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv[1])
SCHEMES = {"NS", "NSV", "FOR", "DELTA", "RLE", "DICT"}
GOALS = {"speed", "balanced", "ratio", "search", "zstd", "gzip"}
WAYS = {"stream", "sync", "pageable", "zerocopy"}


class Failure(Exception):
    pass


def holds(condition, what):
    if not condition:
        raise Failure(what)


def run(script, programs, plots, **variables):
    """The rows of its CSV file. `programs`: {name: file}, the build folder that it sees."""
    with tempfile.TemporaryDirectory() as build:
        for name, file in programs.items():
            os.symlink(os.path.join(BUILD, file), os.path.join(build, name))
        file, out = os.path.join(build, "figures.csv"), os.path.join(build, "out")
        environment = os.environ | variables | {"CSV": file, "OUT": out, "RUNS": "1", "THREADS": "2", "PINNING_SECONDS": "0.01"}
        done = subprocess.run([os.path.join(ROOT, "bench", script), build], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=250)
        holds(done.returncode == 0, done.stdout)
        for plot in plots:
            with open(os.path.join(out, plot + ".svg")) as svg:
                holds(svg.read().rstrip().endswith("</svg>"), plot)
        with open(file, newline="") as figures:
            return list(csv.DictReader(figures))


def emulated(*names):
    programs = {name: os.path.join("emulated", name) for name in names}
    return programs if all(os.path.exists(os.path.join(BUILD, file)) for file in programs.values()) else None


def test_compression():
    columns = "l_shipdate l_discount l_comment"
    programs = {name: name for name in ("tessera", "tpch_gen", "compression_bench")}
    rows = run("compression.py", programs, ["ratio", "schemes", "encode", "decode", "scan"], SCALE="0.01", COLUMNS=columns,
               PARTS="columns scan", ROWS="300000")
    holds(len([row for row in rows if row["selectivity"]]) == 5 * (3 + 2) * 2, "scan")
    rows = [row for row in rows if not row["selectivity"]]
    bytes_of = {(row["column"], row["plan"]): int(float(row["bytes"])) for row in rows}
    for column in ("l_shipdate", "l_discount", "l_discount double"):
        plans = {plan for name, plan in bytes_of if name == column}
        wanted = GOALS | ((SCHEMES - {"NSV"}) | {"SCALE"} if column == "l_discount double" else SCHEMES)
        holds(plans >= wanted, f"{column}: no {wanted - plans}")
        holds(bytes_of[column, "ratio"] <= 1.05 * bytes_of[column, "search"], f"{column}: the planner's tree is worse than the best")
        holds(bytes_of[column, "search"] <= 1.01 * min(bytes_of[column, s] for s in SCHEMES & plans), f"{column}: a scheme is better")
    holds(("l_comment", "zstd") in bytes_of and ("l_comment", "NS") not in bytes_of, "l_comment")
    for row in rows:
        if row["plan"] in GOALS - {"zstd", "gzip"} | SCHEMES and float(row["unpacked_bytes"]) > 0:
            holds(float(row["estimated_ms"]) > 0 < float(row["decode_ms"]), str(row))


def test_stream():
    programs = emulated("tessera", "transfer_bench")
    if programs is None:
        return "the emulated GPU was not built"
    run("compression.py", programs, ["scan"], PARTS="scan", DEVICE="gpu", ROWS="100000")
    rows = run("stream.py", programs, ["pieces", "widths"], ROWS="100000", PIECES="65536 1048576")
    pieces = {(row["name"], row["piece"]) for row in rows if row["part"] == "pieces"}
    for name in ("transfer", "sync_total", "stream_total", "pageable_total", "zerocopy_total", "tessera_sync", "tessera_stream"):
        holds({(name, "65536"), (name, "1048576")} <= pieces, name)
    widths = [(row["name"], row["width"]) for row in rows if row["part"] == "widths"]
    holds(len(widths) == len(set(widths)) == 7 * 4, str(widths))
    holds(all(float(row["gb_per_s"]) > 0 for row in rows), "a rate is 0")
    rows = run("stream.py", programs | {"ssb_gen": "ssb_gen"}, [], PARTS="ssb", SCALE="0.01", RUNS="1")
    holds(len({row["name"] for row in rows}) == len(rows) == 13 * 3, str(rows))
    holds(all(float(row["ms"]) > 0 for row in rows), "a time is 0")
    return None


def test_disk():
    if not all(os.path.exists(os.path.join(BUILD, name)) for name in ("tessera", "disk_bench")):
        return "the programs were not built"
    with tempfile.NamedTemporaryFile() as file:
        try:
            os.close(os.open(file.name, os.O_RDONLY | os.O_DIRECT))
        except OSError:
            return f"no O_DIRECT in {tempfile.gettempdir()}"
    rows = run("stream.py", {name: name for name in ("tessera", "disk_bench")}, [], ROWS="100000", PARTS="disk")
    names = [row["name"] for row in rows]
    holds(names == [f"{way}, {threads} threads" for threads in (1, 2) for way in ("direct", "cold", "hot")], str(names))
    holds(all(float(row["ms"]) > 0 and float(row["gb_per_s"]) > 0 for row in rows), "a rate is 0")
    return None


def test_model():
    programs = emulated("tessera", "transfer_bench")
    if programs is None:
        return "the emulated GPU was not built"
    rows = run("model.py", programs | {"ssb_gen": "ssb_gen"}, ["transfer", "invisible", "split", "model"], SCALE="0.01")
    for part, ways in (("transfer", WAYS | {"resident"}), ("model", {"resident", "cold"}),
                       ("invisible", {"resident, on", "resident, off", "cold, on", "cold, off"}),
                       ("sorted", {"as loaded", "sorted"})):
        found = {(row["way"], row["query"]) for row in rows if row["part"] == part}
        holds({way for way, _ in found} == ways and len(found) == 13 * len(ways), f"{part}: {found}")
    predicted = [row for row in rows if row["part"] == "model"]
    holds(all(float(row["predicted_ms"]) > 0 and int(row["bytes"]) > 0 for row in predicted), "a prediction is 0")
    return None


def test_insert():
    rows = run("insert.py", {"tessera": "tessera"}, [], ROWS="20", DISK_ROWS="3", ROUNDS="2")
    found = [(row["part"], row["engine"], row["rows"], row["round"]) for row in rows]
    holds(found == [(part, engine, number, r) for part, number in (("memory", "20"), ("disk", "3")) for r in "01"
                    for engine in ("Tessera", "SQLite")], str(found))
    holds(all(float(row["ms_each"]) > 0 for row in rows), "a time is 0")


def test_server():
    """All answers of many sessions are right, whatever runs beside them; what other programs are there is used."""
    python = python_with("duckdb", "psycopg") or sys.executable
    rows = run("server.py", {"tessera": "tessera", "tpch_gen": "tpch_gen"}, [], PARTS="trips tpch copy rows", TPCH_SCALE="0.01", SECONDS="0.2",
               IDLE="30", ROWS="20000", PATH=os.path.dirname(python) + ":" + os.environ["PATH"])
    found = {row["what"]: row["value"] for row in rows}
    for what in ("SELECT 1, 16 connections", "30 idle connections, process", "TPC-H, 5 sessions beside 5 pairs of RF1 and RF2", "  RF1 among them"):
        holds(float(found[what]) > 0, what)
    if python_with("duckdb", "psycopg"):
        holds(any("DuckDB" in what and "5 cursors" in what and value for what, value in found.items()), str(found))
        holds(float(found["20,000 rows to psycopg, Tessera"]) > 0, str(found))


# Slurm's commands: a job runs at once, and an allocation is this machine. Nothing is built.
SLURM = {"sbatch": """#!/bin/bash
job=$(($(wc -l <"$JOBS") + 1))
echo "$job $*" >>"$JOBS"
SLURM_SUBMIT_DIR=$PWD bash "${!#}" >&2 || exit 1
echo "$job;cluster"
""", "srun": """#!/bin/bash
[[ $1 == --mpi=pmix ]] || exit 1
exec mpirun --oversubscribe --bind-to none "${@:3}"
""", "make": """#!/bin/bash
echo "$*" >"$JOBS.make"
"""}


def test_slurm_jobs():
    folder = os.path.join(ROOT, "bench", "scaling", "slurm")
    scripts = sorted(os.listdir(folder))
    holds(scripts == ["build.sbatch", "load.sbatch", "plot.sbatch", "run.sbatch", "submit.sh"], str(scripts))
    for script in scripts:
        subprocess.run(["bash", "-n", os.path.join(folder, script)], check=True)
    programs = ["tessera", "tessera_mpi.so", "join_gen"]
    if shutil.which("mpirun") is None or not all(os.path.exists(os.path.join(BUILD, name)) for name in programs):
        return "no MPI in this build"
    with tempfile.TemporaryDirectory() as work:
        bin_, build, jobs = (os.path.join(work, name) for name in ("bin", "build", "jobs"))
        os.mkdir(bin_)
        os.mkdir(build)
        open(jobs, "w").close()
        for name, text in SLURM.items():
            with open(os.path.join(bin_, name), "w") as out:
                out.write(text)
            os.chmod(out.name, 0o755)
        for name in programs:  # (the program looks for its library where it is itself)
            os.link(os.path.join(BUILD, name), os.path.join(build, name)) if os.stat(BUILD).st_dev == os.stat(build).st_dev \
                else shutil.copy(os.path.join(BUILD, name), build)
        done = subprocess.run([os.path.join(folder, "submit.sh"), "2"], text=True, timeout=250, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              env=os.environ | {"PATH": bin_ + ":" + os.environ["PATH"], "JOBS": jobs, "BUILD": build,
                                                "SUITES": "select", "ROWS": "20000", "RUNS": "1", "ROUNDS": "1",
                                                "SBATCH": "--partition=p", "RUN_SBATCH": "--exclusive"})
        holds(done.returncode == 0, done.stdout)
        submitted = [line.split() for line in open(jobs).read().splitlines()]
        names = [os.path.basename(line[-1]) for line in submitted]
        holds(names == ["build.sbatch", "load.sbatch", "run.sbatch", "run.sbatch", "plot.sbatch"], str(names))
        after = [[word for word in line if word.startswith("--dependency")] for line in submitted]
        holds(after == [[], ["--dependency=afterok:1"], ["--dependency=afterok:2"], ["--dependency=afterok:2:3"],
                        ["--dependency=afterok:3:4"]], str(after))
        holds(all("--partition=p" in line for line in submitted), "options are lost")
        holds([("--exclusive" in line, "--nodes=2" in line) for line in submitted] ==
              [(False, False)] * 2 + [(True, True)] * 2 + [(False, False)], str(submitted))
        holds("tessera_mpi.so" in open(jobs + ".make").read(), "nothing is built")
        for mode in ("strong", "weak"):
            out = os.path.join(build, "bench", "scaling-" + mode)
            with open(os.path.join(out, "runs.csv"), newline="") as file:
                runs = list(csv.DictReader(file))
            holds({(row["ranks"], row["rank"]) for row in runs} == {("1", "0"), ("2", "0"), ("2", "1")}, mode)
            with open(os.path.join(out, "medians.csv"), newline="") as file:
                medians = list(csv.DictReader(file))
            # The empty query, ten others, their sum.
            holds(len(medians) == 12 * 2 and all(float(row["ms"]) > 0 and row["mode"] == mode for row in medians), mode)
            for plot in ("speedup", "breakdown", "prediction"):
                with open(os.path.join(out, f"select-{plot}.svg")) as svg:
                    holds(svg.read().rstrip().endswith("</svg>"), plot)
    return None


def python_with(*modules):
    """A Python that has them, or None."""
    for python in (sys.executable, os.path.join(ROOT, "build", "venv", "bin", "python")):
        command = [python, "-c", "import " + ", ".join(modules)]
        if os.path.exists(python) and subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


def test_clickbench():
    """The table is the same for any number of threads, and all queries have DuckDB's rows."""
    rows = 20_000
    with tempfile.TemporaryDirectory() as build:
        texts = []
        for jobs in ("1", "3"):
            out = os.path.join(build, jobs)
            subprocess.run([os.path.join(BUILD, "clickbench_gen"), "--rows", str(rows), "--out", out, "--jobs", jobs], check=True,
                           stdout=subprocess.DEVNULL)
            with open(os.path.join(out, "hits.tbl"), "rb") as file:
                texts.append(file.read())
        holds(texts[0] == texts[1], "other bytes with three threads")
        lines = texts[0].splitlines()
        holds(len(lines) == rows and all(line.count(b"|") == 105 for line in lines), "not 105 columns in each row")
        first = [line.split(b"|") for line in lines]
        holds(len({line[0] for line in first}) == rows, "hit_id is not unique")
        phrases = sum(1 for line in first if line[9])
        holds(rows / 10 < phrases < rows / 6, f"{phrases} rows have a phrase")
        python = python_with("duckdb")
        if python is None:
            return "no DuckDB"
        for name in ("tessera", "queries_bench", "clickbench_gen"):
            os.symlink(os.path.join(BUILD, name), os.path.join(build, name))
        file = os.path.join(build, "figures.csv")
        path = os.path.dirname(python) + ":" + os.environ["PATH"]
        done = subprocess.run([os.path.join(ROOT, "bench", "queries.sh"), "clickbench", "bench", build, str(rows), "host", file],
                              env=os.environ | {"RUNS": "1", "THREADS": "2", "PATH": path}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=250)
        holds(done.returncode == 0, done.stdout)
        holds("geometric mean of 43 ratios" in done.stdout, done.stdout)
        with open(file, newline="") as figures:
            holds(all(row["duckdb_ms"] and not row["failed"] for row in csv.DictReader(figures)), done.stdout)
    return None


def test_groupby():
    """Three engines have the same answers."""
    python = python_with("duckdb", "polars", "pyarrow", "numpy")
    if python is None or not os.path.exists(os.path.join(BUILD, "tessera_arrow.so")):
        return "it needs DuckDB, Polars and pyarrow, and the plugin for Parquet"
    with tempfile.TemporaryDirectory() as build:
        os.symlink(os.path.join(BUILD, "tessera"), os.path.join(build, "tessera"))
        file = os.path.join(build, "figures.csv")
        done = subprocess.run([python, os.path.join(ROOT, "bench", "groupby.py"), build], stdout=subprocess.PIPE,
                              env=os.environ | {"ROWS": "30000", "RUNS": "1", "THREADS": "2", "CSV": file},
                              stderr=subprocess.STDOUT, text=True, timeout=250)
        holds(done.returncode == 0, done.stdout)
        with open(file, newline="") as figures:
            names = [row["query"] for row in csv.DictReader(figures)]
    wanted = [f"g{i}" for i in range(1, 11)] + [f"j{i}{way}" for way in ("", " stored") for i in range(1, 6)]
    holds(names == wanted, str(names))
    return None


def main():
    failed = passed = 0
    for test in (test_compression, test_stream, test_disk, test_model, test_insert, test_server, test_clickbench, test_groupby, test_slurm_jobs):
        if len(sys.argv) > 2 and test.__name__ not in sys.argv[2:]:
            continue
        try:
            skipped = test()
            print(f"skipped {test.__name__}: {skipped}" if skipped else f"ok     {test.__name__}")
            passed += not skipped
        except (Failure, OSError, subprocess.SubprocessError) as failure:
            print(f"FAILED {test.__name__}\n{failure}")
            failed += 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
