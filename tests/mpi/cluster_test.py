#!/usr/bin/env python3
"""Ranks under mpirun: right answers, every failure one message and an end, no process left over.

    tests/mpi/cluster_test.py BUILD_DIR

Closes with the line "N passed, N failed". Without MPI in the build, that tessera says so is all there is to test.
"""

import csv
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from rank_jobs import (BUILD, ENVIRONMENT, LIMIT, LONG, QUERIES, TESSERA, WORK, Job, another_disk, check, check_one_error,
                       database, has_mpi, made, mpirun, processes, run, run_tests)

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shell"))
from terminal import Terminal  # noqa: E402

# ---- Right answers ----------------------------------------------------------------------------------------------------

def test_the_rows_of_one_process():
    directory = database("same")
    alone = run([TESSERA, "-csv", directory, "-c", QUERIES])
    check(alone.returncode == 0, alone.stderr)
    script = os.path.join(WORK, "same.sql")
    open(script, "w").write(QUERIES)
    for ranks in (1, 2, 3, 4, 7):
        for command, text in ((["-c", QUERIES], None), (["-f", script], None), ([], QUERIES)):
            done = run(mpirun(ranks, directory, *command), text)
            check(done.returncode == 0, ranks, command, done.stderr)
            check(done.stdout == alone.stdout, ranks, command, done.stdout, "instead of", alone.stdout)


def test_small_tables_are_shared_by_tiles():
    directory = database("tiles", rows=20000, tablet_rows=1 << 16)
    stats = os.path.join(WORK, "tiles.stats")
    done = run(mpirun(4, directory, "--stats-file", stats, "-c", "SELECT count(*), sum(a) FROM t"))
    check(done.stdout == "count(*),sum(a)\n20000,199990000\n", done.stdout, done.stderr)
    scanned = [int(line["rows_scanned"]) for line in csv.DictReader(open(stats)) if line["section"] == ""]
    check(len(scanned) == 4 and min(scanned) > 0 and sum(scanned) == 20000, scanned)


def test_tablets_are_shared_by_bytes():
    directory = database("uneven", rows=6 * 65536, tablet_rows=65536)
    query = "SELECT count(*), sum(a), min(b) FROM t"
    ordered = "SELECT a, b FROM t WHERE a % 30011 = 7"
    alone = [run([TESSERA, directory, "-c", sql]).stdout for sql in (query, ordered)]
    for ranks, most in ((4, 1.01), (2, 1.01), (5, 1.05)):
        for options in ([], ["--scatter"]):
            stats = os.path.join(WORK, "uneven.stats")
            done = run(mpirun(ranks, directory, *options, "--stats-file", stats, "-c",
                              f"SET replicate_below = 0; {query}; {ordered}"))
            check(done.stdout == "".join(alone), ranks, options, done.stdout, "instead of", alone, done.stderr)
            lines = [line for line in csv.DictReader(open(stats)) if line["section"] == ""][:ranks]
            scanned = [int(line["rows_scanned"]) for line in lines]
            check(sum(scanned) == 6 * 65536 and max(scanned) <= most * sum(scanned) / ranks, ranks, options, scanned)
            if options:
                # What is cut goes to each rank that scans some of it, and nothing else goes twice.
                sent = int(lines[0]["bytes_scattered"])
                all_bytes = sum(map(os.path.getsize, glob.glob(directory + "/tablet-*")))
                check(0 < sent < (ranks - 1 + 4) / 6 * all_bytes, ranks, sent, all_bytes)


def test_a_table_that_is_also_read_as_runs():
    directory = made("runs", "; ".join(f"CREATE TABLE {name} (v INTEGER, w INTEGER) WITH (tablet_rows = 2048); "
                                       f"INSERT INTO {name} SELECT g / 16, g FROM generate_series(0, 99999) s(g)" for name in "tu"))
    stats = os.path.join(WORK, "runs.stats")
    for query in ("SELECT count(*), sum(q.w), (SELECT sum(v) FROM t WHERE v > 5) FROM t q, u p WHERE p.v = q.v AND p.w < 900",
                  "SELECT count(*), sum(p.v) FROM t p, t q WHERE p.v = q.v"):
        check("runs of v in t" in run([TESSERA, directory, "-c", "EXPLAIN (PROGRAM) " + query]).stdout, query)
        rows, sent = [], []
        for reads in ("off", "on"):
            rows.append(run([TESSERA, directory, "-c", f"SET read_runs = {reads}; {query}"]).stdout)
            done = run(mpirun(3, directory, "--scatter", "--stats-file", stats, "-c",
                              f"SET replicate_below = 0; SET read_runs = {reads}; {query}"))
            rows.append(done.stdout)
            check(len(set(rows)) == 1, query, rows, done.stderr)
            sent.append(int(next(csv.DictReader(open(stats)))["bytes_scattered"]))
        # Each rank gets a tablet once, however often it is read.
        check(0 < sent[1] <= 1.5 * sent[0], query, sent)


def test_distributed_tables_exchange_nothing():
    # Rows travel packed, so there are enough of them to stand out beside the program and the answer, which always travel.
    directory = os.path.join(WORK, "buckets")
    check(run([TESSERA, directory, "-c", """
        CREATE TABLE a (k INTEGER, x BIGINT) WITH (distribute_by = k);
        CREATE TABLE b (k BIGINT, y BIGINT) WITH (distribute_by = k);
        CREATE TABLE plain (k BIGINT, y BIGINT) WITH (tablet_rows = 1000);
        INSERT INTO a SELECT g % 90000, g FROM generate_series(1, 300000) s(g);
        INSERT INTO b SELECT nullif(g % 70000, 5), g FROM generate_series(1, 200000) s(g);
        INSERT INTO plain SELECT k, y FROM b"""]).returncode == 0, "no database")
    for query, says, none in (
            ("SELECT count(*), sum(x + y) FROM a JOIN {} ON a.k = {}.k", "build side co-located", "exchanged by key"),
            ("SELECT count(*), sum(n), max(k) FROM (SELECT k, count(*) AS n FROM {} GROUP BY k) g", "co-located", "exchanged by key"),
            ("SELECT count(*), sum(n) FROM (SELECT row_number() OVER (PARTITION BY k ORDER BY y) AS n FROM {}) w", "co-located",
             "exchanged by key")):
        alone = run([TESSERA, directory, "-c", query.format("b", "b")]).stdout
        for ranks, options in ((2, []), (3, ["--scatter"]), (7, [])):
            sent = []
            for table in ("b", "plain"):
                stats = os.path.join(WORK, "buckets.stats")
                sql = query.format(table, table)
                done = run(mpirun(ranks, directory, *options, "--stats-file", stats, "-c",
                                  f"SET replicate_below = 0; SET exchange_above = 0; SET join_exchange = on; EXPLAIN (PROGRAM) {sql}; {sql}"))
                check(done.stdout.endswith(alone), ranks, sql, alone, done.stdout, done.stderr)
                check((says in done.stdout) == (table == "b") and (none in done.stdout) == (table != "b"), sql, done.stdout)
                lines = [line for line in csv.DictReader(open(stats)) if line["section"] == ""][-ranks:]
                check(all(int(line["rows_scanned"]) > 0 for line in lines), ranks, sql, lines)
                sent.append(sum(int(line["bytes_sent"]) for line in lines))
            check(sent[0] < sent[1] / 3, ranks, query, "bytes sent:", sent)
    # What ranks load, one process reads.
    done = run(mpirun(3, directory, "-c", "INSERT INTO a SELECT k, y FROM b WHERE y < 50; SELECT count(*) FROM a JOIN b ON a.k = b.k"))
    check(done.stdout == run([TESSERA, directory, "-c", "SELECT count(*) FROM a JOIN b ON a.k = b.k"]).stdout, done.stdout, done.stderr)


def test_statistics_of_every_rank():
    directory = database("stats")
    for form in ("csv", "json"):
        done = run(mpirun(3, directory, "--stats", form, "-c", "SET replicate_below = 0; SELECT b, sum(a) FROM t GROUP BY b"))
        lines = [line for line in done.stderr.splitlines() if line.count(",") > 10]
        if form == "csv":
            check([line["rank"] for line in csv.DictReader(lines) if line["section"] == ""] == ["0", "1", "2"], done.stderr)
            continue
        lines = [line for line in lines if '"section":null' in line]
        check(len(lines) == 3 and '"rows_scanned":35,' in lines[0], done.stderr)
    # Rows that are streamed count as the result's, like any.
    done = run(mpirun(3, directory, "--stats", "json", "-c", "SET replicate_below = 0; SELECT a FROM t"))
    check('"rank":0,"rows_scanned":35,"rows_out":100,' in done.stderr, done.stderr)


PHASES = ["compile", "scatter", "read", "transfer", "kernel", "execute", "exchange", "wait", "gather", "merge", "print"]


def add_up(line, total):
    """Whether the phases of a line are its total, to 2 % or 50 us."""
    return abs(sum(float(line[p + "_ms"]) for p in PHASES) - total) <= max(0.02 * total, 0.05)


def test_phases_add_up():
    directory = database("phases", rows=20000, tablet_rows=1000)
    script = os.path.join(WORK, "phases.sql")
    with open(script, "w") as out:
        out.write("""SET replicate_below = 0; SET exchange_above = 0; SET join_exchange = on; SET key_spans = off;
            -- name: many
            SELECT x.a, count(*), sum(y.c), max(y.b) FROM t x JOIN t y ON x.a = y.a GROUP BY x.a ORDER BY x.a;
            -- name: few
            SELECT x.b, count(*), sum(y.c) FROM t x JOIN t y ON x.a = y.a GROUP BY x.b ORDER BY x.b;
            SELECT a, rank() OVER (PARTITION BY b ORDER BY c) FROM t ORDER BY a LIMIT 5;
            CREATE TABLE copy AS SELECT a + 1 AS a FROM t; DROP TABLE copy;""")
    for ranks in (1, 2, 3):
        stats = os.path.join(WORK, "phases.stats")
        start = time.monotonic()
        done = run(mpirun(ranks, directory, "--threads", "1", "--stats-file", stats, "-f", script))
        wall = (time.monotonic() - start) * 1e3
        check(done.returncode == 0, done.stderr)
        lines = list(csv.DictReader(open(stats)))
        whole = [line for line in lines if line["section"] == ""]
        check(len(whole) == 4 * ranks, whole)
        check(sum(float(line["total_ms"]) for line in whole if line["rank"] == "0") < wall, whole)
        for line in lines:
            check(add_up(line, float(line["total_ms"])), line)
            check(all(float(line[p + "_ms"]) >= 0 for p in PHASES), line)
            check(line["host"] == os.uname().nodename and line["device"] == "host" and line["threads"] == "1", line)
            check(line["version"] in run([TESSERA, "--version"]).stdout, line)
        for line in whole:
            sections = [s for s in lines if s["section"] != "" and (s["statement"], s["rank"]) == (line["statement"], line["rank"])]
            check(len(sections) > 0, line)
            check(sum(float(s["total_ms"]) for s in sections) <= float(line["total_ms"]) + 0.05, line, sections)
            check(float(line["read_ms"]) > 0 and float(line["execute_ms"]) > 0, line)
        for name, numbers in (("many", {"5"}), ("few", {"6"}), ("phases", {"7", "8"})):
            check({line["statement"] for line in whole if line["name"] == name} == numbers, name, whole)
        # Only the master compiles a text and prints; ranks wait for each other.
        check(all((float(line["print_ms"]) > 0) == (line["rank"] == "0") for line in whole), whole)
        check(all((float(line["wait_ms"]) > 0) == (ranks > 1) for line in whole), whole)
        check(all((float(line["exchange_ms"]) > 0) == (ranks > 1) for line in whole if line["name"] == "many"), whole)

        # What one rank has sent to another is what that one has received of it.
        def partners(line, column):
            return {int(pair.split(":")[0]): int(pair.split(":")[1]) for pair in line[column].split()}
        for number in {line["statement"] for line in whole}:
            of = {int(line["rank"]): line for line in whole if line["statement"] == number}
            for a in of:
                sent = partners(of[a], "sent_to")
                check(sum(sent.values()) == int(of[a]["bytes_sent"]), of[a])
                check(all(partners(of[b], "received_from").get(a, 0) == sent.get(b, 0) for b in of if b != a), of)
                check(ranks == 1 or len(sent) > 0, of[a])


def test_trace():
    """Spans nest, lie within their statement, and are the phases of the statistics."""
    directory = database("trace", rows=20000, tablet_rows=1000)
    # (A rank may lose its core between the two clocks that tell how long a statement took; not each time.)
    for _ in range(3):
        late = check_trace(directory)
        if not late:
            break
    check(not late, *late)


def check_trace(directory):
    """Returns the statements of ranks that took another time by their span than by the statistics."""
    late = []
    trace, stats = os.path.join(WORK, "trace.json"), os.path.join(WORK, "trace.stats")
    done = run(mpirun(3, directory, "--threads", "1", "--trace", trace, "--stats", "json", "--stats-file", stats, "-c",
                      "SET replicate_below = 0; SET exchange_above = 0;\n-- name: \"quoted\"\n"
                      "SELECT x.a, count(*) FROM t x JOIN t y ON x.a = y.a GROUP BY x.a ORDER BY x.a; SELECT sum(a) FROM t"))
    check(done.returncode == 0, done.stderr)
    events = json.load(open(trace))
    check({e["args"]["name"] for e in events if e.get("name") == "process_name"} ==
          {f"rank {r}, {os.uname().nodename}" for r in range(3)}, events)
    lines = [json.loads(line) for line in open(stats)]
    spans = [e for e in events if e["ph"] == "X"]
    check({e["tid"] for e in spans} == {0}, "rows of GPUs without one")
    statements = [e for e in spans if "args" in e]
    check(sorted((e["args"]["statement"], e["pid"]) for e in statements) == [(n, r) for n in (3, 4) for r in range(3)], statements)
    check({e["name"] for e in statements} == {'"quoted"', "statement 4"}, statements)
    slack = 0.002  # microseconds, of rounding
    for rank in range(3):
        open_spans, own = [], [e for e in spans if e["pid"] == rank]
        for e in own:
            while open_spans and e["ts"] >= open_spans[-1]["ts"] + open_spans[-1]["dur"] - slack:
                open_spans.pop()
            if open_spans:
                check(e["ts"] + e["dur"] <= open_spans[-1]["ts"] + open_spans[-1]["dur"] + slack, "overlap:", e, open_spans[-1])
            else:
                check("args" in e, "outside of a statement:", e)
            open_spans.append(e)
        for s in [e for e in own if "args" in e]:
            # A rank starts after the master and ends before it: they are on one machine.
            of = next(e for e in statements if e["pid"] == 0 and e["args"] == s["args"])
            check(of["ts"] - slack <= s["ts"] and s["ts"] + s["dur"] <= of["ts"] + of["dur"] + slack, s, of)
            line = next(l for l in lines if l["section"] is None and (l["statement"], l["rank"]) == (s["args"]["statement"], rank))
            inside = [e for e in own if s["ts"] - slack <= e["ts"] and e["ts"] + e["dur"] <= s["ts"] + s["dur"] + slack]
            for phase in PHASES:
                ms = sum(e["dur"] for e in inside if e["name"] == phase) * 1e-3
                check(abs(ms - line[phase + "_ms"]) < 0.05, phase, ms, line)
            if abs(s["dur"] * 1e-3 - line["total_ms"]) >= max(0.05, 0.02 * line["total_ms"]):
                late.append((s, line))
            check(any(e["name"].startswith("scan t") for e in inside), inside)
    return late


def test_waiting_is_not_communication():
    """A rank that comes late makes the others wait; it does not make their messages slow."""
    directory = database("late", rows=200000, tablet_rows=50000)
    # All rows that take long are in the tablets of rank 1.
    query = ("SET replicate_below = 0; SELECT count(*) FROM t WHERE a / 50000 % 2 = 1 AND "
             "length(repeat(b || a, 200)) > 0 AND length(repeat(b || c, 200)) > 0")
    stats = os.path.join(WORK, "late.stats")
    done = run(mpirun(2, directory, "--threads", "1", "--stats-file", stats, "-c", query))
    check(done.stdout == "count(*)\n100000\n", done.stdout, done.stderr)
    first, second = [line for line in csv.DictReader(open(stats)) if line["section"] == ""]
    late = float(second["execute_ms"]) - float(first["execute_ms"])
    check(late > 5, first, second)
    check(float(first["wait_ms"]) > late / 2, first, second)
    check(float(first["gather_ms"]) + float(first["exchange_ms"]) < late / 4, first, second)


def test_explain_analyze_compares_ranks():
    directory = database("compare", rows=20000, tablet_rows=1000)
    query = "SET replicate_below = 0; EXPLAIN (ANALYZE, PROGRAM) SELECT b, sum(a) FROM t GROUP BY b ORDER BY b"
    done = run(mpirun(3, directory, "-c", query))
    found = re.search(r"ranks +fastest ms +slowest ms +mean ms +mean wait ms +sent +section\n[- ]+\n((?:.+\n)+)", done.stdout)
    check(found, done.stdout, done.stderr)
    rows = [re.fullmatch(r"(\d) +([\d.]+) \(rank (\d)\) +([\d.]+) \(rank (\d)\) +([\d.]+) +([\d.]+) +[\d.]+ [KM]?B +(.+)", row)
            for row in found[1].splitlines()]
    check(all(rows), found[1])
    check(rows[0][1] == "3" and rows[0][8] == "scan t" and rows[-1][8].startswith("all"), found[1])
    for row in rows:
        check(float(row[2]) <= float(row[6]) <= float(row[4]), row[0])
        check(row[1] == "1" or row[3] != row[5], row[0])
    done = run([TESSERA, directory, "-c", query])
    check("fastest" not in done.stdout and done.returncode == 0, done.stdout)


def test_explain_says_how_ranks_share():
    directory = database("explain")
    done = run(mpirun(2, directory, "-c", "EXPLAIN (PROGRAM) SELECT x.a FROM t x, t y WHERE x.a = y.a"))
    check("build side broadcast to all (on GPUs: made by each)" in done.stdout and "2 ranks" in done.stdout, done.stdout)
    done = run(mpirun(2, directory, "-c", "SET replicate_below = 0; EXPLAIN (PROGRAM) SELECT x.a FROM t x, t y WHERE x.a = y.a"))
    check("build side broadcast to all\n" in done.stdout, done.stdout)
    # A nested-loop join: the section over its grid, too, runs on all ranks. What reads a result is the master's.
    done = run(mpirun(2, directory, "-c", "SET join_strategy = grid; EXPLAIN (PROGRAM) SELECT count(*) FROM t x, t y WHERE x.a < y.a"))
    check("on every rank, the grid shared by tiles and ranges (on GPUs: by pieces of these rows); partial groups merged by a tree" in done.stdout, done.stdout)
    check(done.stdout.count("on the master") == 1, done.stdout)


def test_changes_are_made_once():
    directory = database("changes")
    done = run(mpirun(3, directory, "--no-bail", "-c",
                      "CREATE TABLE u (a INTEGER, b TEXT); INSERT INTO u SELECT a, b FROM t;"
                      f"COPY t FROM '{os.path.join(WORK, 'changes.csv')}'; INSERT INTO u VALUES (1, 'x'); DROP TABLE IF EXISTS v;"
                      "SELECT count(*) FROM u; SELECT count(*) FROM t; INSERT INTO u SELECT 2147483000 + a * 10, b FROM t;"
                      "SELECT count(*) FROM u; DROP TABLE u; SELECT count(*) FROM t"))
    numbers = [line for line in done.stdout.splitlines() if line.isdigit()]
    check(numbers == ["101", "200", "101", "200"], done.stdout, done.stderr)
    check_one_error(done, "out of range")


def test_copy_to_and_scatter_of_new_tablets():
    directory = database("session")
    out = os.path.join(WORK, "session.out")
    done = run(mpirun(3, directory, "--scatter", "-c",
                      f"SET replicate_below = 0; SELECT sum(a) FROM t; COPY t FROM '{os.path.join(WORK, 'session.csv')}';"
                      f"SELECT sum(a) FROM t; COPY t TO '{out}'"))
    check(done.returncode == 0, done.stderr)
    check([line for line in done.stdout.splitlines() if line.isdigit()] == ["4950", "9900"], done.stdout)
    check(len(open(out).readlines()) == 200, "COPY TO")


# ---- COPY that all ranks share ----------------------------------------------------------------------------------------

def load_file(name, rows, bad=()):
    """A CSV file with a head, texts of two lines, quotes and NULLs. In the records of `bad` the number is none."""
    path = os.path.join(WORK, name + ".csv")
    with open(path, "w", newline="") as out:
        out.write("a,b,c\n")
        for i in range(rows):
            text = f'"two\nlines ""{i}"""' if i % 5 == 1 else "" if i % 7 == 2 else f"text {i % 100}"
            out.write(f"{'none' if i in bad else i},{text},{i * 0.5}\n")
    return path


LOAD_TABLE = ("CREATE TABLE IF NOT EXISTS u (a INTEGER{}, b TEXT, c DOUBLE PRECISION DEFAULT 1.5) WITH (tablet_rows = 100);"
              "SET share_copy_above = 0; SET replicate_below = 0; ")


def files_of(directory):
    return sorted(name for name in os.listdir(directory) if name.startswith(("tablet-", "writing-")))


def table_of(directory):
    """What one process reads of u, and the sizes of its tablets."""
    rows = run([TESSERA, "-csv", directory, "-c", "SELECT * FROM u; SELECT count(*), count(b), sum(a) FROM u"])
    return rows.stdout + rows.stderr, [os.path.getsize(os.path.join(directory, name)) for name in files_of(directory)]


def slow_disk(rank, seconds):
    """A library for processes under mpirun: on that rank, to sync a file takes so long."""
    name = os.path.join(WORK, f"slow{rank}_{seconds}")
    with open(name + ".c", "w") as out:
        out.write(f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int fsync(int file) {{
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank != NULL && strcmp(rank, "{rank}") == 0) sleep({seconds});
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}}
""")
    subprocess.run(["gcc", "-shared", "-fPIC", name + ".c", "-o", name + ".so", "-ldl"], check=True)
    return name + ".so"


def test_copy_is_shared_by_all_ranks():
    path = load_file("shared", 12345)
    twice = f"COPY u FROM '{path}' (HEADER); INSERT INTO u VALUES (-1, 'between', 0);" * 2
    swapped = f"COPY u (a, b, c) FROM '{path}' (HEADER, NULL 'text 9'); "
    # Columns by their names, and empty lines at the end.
    turned = os.path.join(WORK, "turned.csv")
    with open(turned, "w", newline="") as out:
        out.write("B,c,a\n" + "".join(f"text {i},{i * 0.25},{i}\n" for i in range(4321)) + "\n\r\n\n")
    swapped += f"COPY u FROM '{turned}' (HEADER)"
    alone = os.path.join(WORK, "shared_alone")
    check(run([TESSERA, alone, "-c", LOAD_TABLE.format("") + twice + swapped]).returncode == 0, "alone")
    for ranks in (1, 2, 3, 7):
        directory = os.path.join(WORK, f"shared_{ranks}")
        done = run(mpirun(ranks, directory, "-c", LOAD_TABLE.format("") + twice + swapped + "; SELECT count(*), sum(a) FROM u"))
        check(done.returncode == 0, ranks, done.stderr)
        check(done.stdout.endswith(f"{3 * 12345 + 2 + 4321},{3 * sum(range(12345)) - 2 + sum(range(4321))}\n"), done.stdout)
        check(table_of(directory) == table_of(alone), ranks, "ranks make another table")


def test_copy_of_few_rows():
    for rows in (0, 1, 99, 100, 101, 250):
        path = load_file("few", rows)
        directory = os.path.join(WORK, f"few_{rows}")
        done = run(mpirun(3, directory, "-c", LOAD_TABLE.format("") + f"COPY u FROM '{path}' (HEADER); SELECT count(*) FROM u"))
        check(done.stdout.splitlines()[-1] == str(rows) and done.returncode == 0, rows, done.stdout, done.stderr)


def test_errors_of_a_copy_on_ranks():
    directory = os.path.join(WORK, "load_errors")
    good = load_file("good", 1000)
    check(run([TESSERA, directory, "-c", LOAD_TABLE.format(" PRIMARY KEY") + f"COPY u FROM '{good}' (HEADER)"]).returncode == 0, "no table")
    before, files = table_of(directory), files_of(directory)

    def fails(path, *parts):
        for ranks in (2, 3, 7):
            done = run(mpirun(ranks, directory, "-c", LOAD_TABLE.format("") + f"COPY u FROM '{path}' (HEADER)"))
            check_one_error(done, *[part.format(rank=ranks - 1) for part in parts])
            check(files_of(directory) == files, "files are left:", files_of(directory))
        check(table_of(directory) == before, "the table has changed")

    # (Each fifth record has two lines; the first line is the head.)
    line = 2 + 11990 + 11990 // 5
    fails(load_file("bad_end", 12000, bad=(11990,)), "rank {rank}: ", f'bad_end.csv", line {line}, column "a": invalid')
    # Of several errors the first in the file, whichever rank is faster.
    fails(load_file("bad_often", 12000, bad=range(3, 12000, 500)), "rank 0: ", 'bad_often.csv", line 6, column "a"')
    with open(load_file("open_quote", 12000), "a") as out:
        out.write('12000,"open,1\n')
    fails(os.path.join(WORK, "open_quote.csv"), "rank {rank}: ", f"line {2 + 12000 + 12000 // 5}", "unterminated quoted field")
    # All ranks' rows are compared with each other and with those that were there.
    fails(load_file("again", 12000), "duplicate key")


def test_copy_falls_back_to_one_rank():
    path = os.path.join(WORK, "fall.csv")
    with open(path, "w") as out:
        out.writelines(f"{i},{'none' if i == 2900 else i}\n" for i in range(3000))
    tables = {"checked": "(a INTEGER, b INTEGER CHECK (b >= 0)) WITH (tablet_rows = 100)",
              "made": "(a INTEGER, b INTEGER, c INTEGER GENERATED ALWAYS AS (a + b) STORED) WITH (tablet_rows = 100)",
              "sorted": "(a INTEGER, b INTEGER) WITH (tablet_rows = 100, cluster_by = b)",
              "cut": "(a INTEGER, b INTEGER) WITH (tablet_rows = 100, distribute_by = b)",
              "plain": "(a INTEGER, b INTEGER) WITH (tablet_rows = 100)"}
    for table, columns in tables.items():
        options = "NULL 'none'" + (", ESCAPE '\\'" if table == "plain" else "")
        names = "(a, b)" if table == "made" else ""
        done = run(mpirun(3, os.path.join(WORK, "fall"), "-c",
                          f"SET share_copy_above = 0; CREATE TABLE {table} {columns}; COPY {table} {names} FROM '{path}' ({options});"
                          f"SELECT count(*), sum(b) FROM {table}; COPY {table} {names} FROM '{path}' (ESCAPE '\\')"))
        check("3000," + str(sum(range(3000)) - 2900) in done.stdout, table, done.stdout, done.stderr)
        check_one_error(done, "line 2901")
        check("rank " not in done.stderr, "a rank other than the master:", done.stderr)


def test_copy_where_a_rank_sees_other_files():
    os.makedirs(os.path.join(WORK, "own/data"))
    path = load_file("own/data/file", 3000, bad=(2990,))
    hidden = another_disk(os.path.join(WORK, "own"), "/nowhere")
    for copy, directory in ((path, os.path.join(WORK, "own_data")), (load_file("own_open", 3000, bad=(2990,)), os.path.join(WORK, "own/db"))):
        end = [TESSERA, directory, "-c", LOAD_TABLE.format("") + f"COPY u FROM '{copy}' (HEADER)"]
        if directory.endswith("db"):
            end[2:2] = ["--scatter"]
        done = run(["mpirun", "--oversubscribe", "-np", "2", *end, ":", "-np", "1", "-x", "LD_PRELOAD=" + hidden, *end])
        check_one_error(done, f"line {2 + 2990 + 2990 // 5}")
        check("rank " not in done.stderr, done.stderr)
        check(files_of(directory) == [], files_of(directory))


def test_a_copy_that_loses_a_rank_leaves_the_old_table():
    directory = os.path.join(WORK, "lost")
    path = load_file("lost", 12000)
    check(run([TESSERA, directory, "-c", LOAD_TABLE.format("") + "INSERT INTO u VALUES (1, 'old', 1)"]).returncode == 0, "no table")
    before = table_of(directory)
    library = slow_disk(1, 20)
    for rank, end in ((1, signal.SIGKILL), (0, signal.SIGKILL), (2, signal.SIGTERM)):
        job = Job(3, directory, LOAD_TABLE.format("") + f"COPY u FROM '{path}' (HEADER);\n",
                  launch=lambda ranks, *arguments: mpirun(ranks, *arguments, wrap=("env", "LD_PRELOAD=" + library)))
        check(any(name.startswith("writing-") for name in files_of(directory)), "nothing is written:", files_of(directory))
        os.kill(job.ranks[rank], end)
        job.check_ends(8)
        check(table_of(directory)[0] == before[0], "the table has changed")
        # The next writer removes what no table has.
        done = run([TESSERA, directory, "-c", "CREATE TABLE v (a INTEGER); DROP TABLE v"])
        check(done.returncode == 0 and table_of(directory) == before, done.stderr, files_of(directory))


def test_a_copy_on_ranks_is_canceled():
    directory = os.path.join(WORK, "canceled")
    path = load_file("canceled", 12000)
    for rank in (0, 1):
        start = time.time()
        done = run(mpirun(3, directory, "--no-bail", "-c", LOAD_TABLE.format("") + f"SET statement_timeout = 1000; COPY u FROM '{path}' (HEADER);"
                          "SET statement_timeout = 0; SELECT count(*) FROM u", wrap=("env", "LD_PRELOAD=" + slow_disk(rank, 2))))
        check_one_error(done, "canceling statement due to statement timeout")
        check(done.stdout.splitlines()[-1] == "0" and files_of(directory) == [], done.stdout, files_of(directory))
        check(time.time() - start < 10, "took", time.time() - start)


# ---- Failures -----------------------------------------------------------------------------------------------------------

def statuses(ranks, *arguments):
    """The exit status of every rank."""
    log = tempfile.mktemp(dir=WORK)
    # The wrapper says 0, so that mpirun does not end the others before they could say theirs.
    script = f'trap "" TERM; "$@"; echo $OMPI_COMM_WORLD_RANK $? >>{log}; exit 0'
    run(mpirun(ranks, *arguments, wrap=("bash", "-c", script, "bash")))
    return dict((int(n) for n in line.split()) for line in open(log))


def test_sql_error():
    directory = database("sql")
    check_one_error(run(mpirun(3, directory, "-c", "SELEC 1")), "syntax error")
    # Row 16 is in the third tablet: rank 2 of 3.
    fails = "2147483647 + (CASE WHEN a = 16 THEN 1 ELSE 0 END)"
    query = f"SET replicate_below = 0; SELECT {fails} FROM t"
    for sql in (query, query.replace("SELECT", "SELECT sum(", 1).replace(" FROM", ") FROM"), query + " ORDER BY 1",
                # The error comes up while one of the two is built or probed.
                "SET replicate_below = 0; SELECT x.a FROM t x, t y WHERE x.a = y.a AND 2147483632 + x.a > 0"
                " AND 2147483632 + y.a > 0",
                # The master goes on with what it has gathered until the ranks agree: groups, rows, sorted rows.
                f"SET replicate_below = 0; SELECT max(n) FROM (SELECT a, sum({fails}) AS n FROM t GROUP BY a) x",
                f"SET replicate_below = 0; SELECT max(n) FROM (SELECT {fails} + row_number() OVER () AS n FROM t) x",
                f"SET replicate_below = 0; SELECT max(n) FROM (SELECT {fails} AS n FROM t ORDER BY a LIMIT 90) x"):
        done = run(mpirun(3, directory, "-c", sql))
        check_one_error(done, "out of range", "rank ")
        check(done.own[0].count("rank ") == 1, "named twice:", done.stderr)
    check_one_error(run(mpirun(3, directory, "-c", query)), "rank 2: integer out of range")
    check(statuses(3, directory, "-c", query) == {0: 1, 1: 1, 2: 1}, "statuses")


def test_a_session_goes_on_after_an_error():
    directory = database("on")
    script = "SET replicate_below = 0; SELECT 2147483647 + a FROM t; SELECT sum(a) FROM t"
    done = run(mpirun(3, directory, "--no-bail", "-c", script))
    check("4950" in done.stdout, done.stdout, done.stderr)
    check_one_error(done, "out of range")
    # But not unasked, however the script comes.
    file = os.path.join(WORK, "on.sql")
    with open(file, "w") as out:
        out.write(script)
    for done in (run(mpirun(3, directory, "-c", script)), run(mpirun(3, directory, "-f", file)), run(mpirun(3, directory), text=script),
                 run(mpirun(3, directory, *script.split("; "))), run([TESSERA, "--ranks", "3", directory, script])):
        check("4950" not in done.stdout and done.returncode == 1, done.stdout, done.returncode)
        check_one_error(done, "out of range")
    check(statuses(3, directory, "-c", script, "-c", "SELECT 1") == {0: 1, 1: 1, 2: 1}, "statuses")


def test_a_new_database_of_ranks():
    """Rank 0 makes it with the first change; then the others see it."""
    directory = os.path.join(WORK, "new_one")
    said = f"{directory}: a new database, written at its first change"
    done = run(mpirun(3, directory, "-c", "SELECT 1; SELECT sum(i) FROM generate_series(1, 10) AS g (i)"))
    check(done.returncode == 0 and done.stderr.count(said) == 1 and not os.path.exists(directory), done.stderr)
    statistics = os.path.join(WORK, "new_one.stats")
    done = run(mpirun(3, directory, "--stats-file", statistics, "-c",
                      "SELECT 1; SET replicate_below = 0; CREATE TABLE t (a INTEGER) WITH (tablet_rows = 10);"
                      "INSERT INTO t SELECT i FROM generate_series(1, 100) AS g (i); SELECT sum(a) FROM t; EXPLAIN (PROGRAM) SELECT sum(a) FROM t"))
    check("sum(a)\n5050\n" in done.stdout and "\n3 ranks\n" in done.stdout and done.returncode == 0, done.stdout, done.stderr)
    check(done.stderr.count(said) == 1, done.stderr)
    check({line["rank"] for line in csv.DictReader(open(statistics)) if line["statement"] == "5"} == {"0", "1", "2"}, "all ranks read it")
    done = run(mpirun(3, directory, "-c", "SELECT sum(a) FROM t"))
    check((done.stdout, done.returncode, said in done.stderr) == ("sum(a)\n5050\n", 0, False), done.stdout, done.stderr)
    # Another node does not see it.
    os.makedirs(os.path.join(WORK, "new_private"))
    hidden = another_disk(os.path.join(WORK, "new_private"), "/nowhere")

    def job(name, *options):
        end = [TESSERA, os.path.join(WORK, "new_private", name), *options, "-c", "CREATE TABLE t AS SELECT 7 AS a", "-c",
               "SET replicate_below = 0; SELECT a FROM t"]
        return run(["mpirun", "--oversubscribe", "-np", "2", *end, ":", "-np", "1", "-x", "LD_PRELOAD=" + hidden, *end])
    done = job("db")
    check_one_error(done, "rank 2: ", "cannot be read here", "--scatter")
    done = job("other", "--scatter")
    check(done.stdout == "a\n7\n" and done.returncode == 0, done.stdout, done.stderr)


def test_an_error_stops_the_others_in_a_product():
    directory = database("product", rows=3000)
    # One rank has the row that overflows; the others would be busy for a minute.
    query = LONG + " AND 2147483647 + (CASE WHEN a.a = 7 THEN 1 ELSE 0 END) > 0"
    start = time.time()
    done = run(mpirun(3, directory, "-c", "SET replicate_below = 0; " + query))
    check_one_error(done, "out of range", "rank ")
    check(time.time() - start < 15, "took", time.time() - start)


def test_bad_chunk_and_missing_tablet():
    directory = database("bad")
    files = sorted(glob.glob(os.path.join(directory, "tablet-*.bin")))
    with open(files[1], "r+b") as file:  # the second of three ranks has it
        file.seek(-64, os.SEEK_END)
        byte = file.read(1)
        file.seek(-64, os.SEEK_END)
        file.write(bytes([byte[0] ^ 255]))
    for option in ([], ["--scatter"]):
        done = run(mpirun(3, directory, *option, "-c", "SET replicate_below = 0; SELECT sum(a), sum(c), min(b) FROM t"))
        check_one_error(done, "rank 1: ", "corrupt")
    os.remove(files[1])
    check_one_error(run(mpirun(3, directory, "-c", "SET replicate_below = 0; SELECT sum(c) FROM t")), "rank 1: ", "not there")
    check_one_error(run(mpirun(3, directory, "--scatter", "-c", "SET replicate_below = 0; SELECT sum(c) FROM t")), "rank 0: ",
                    "cannot read")


def test_another_build():
    other = os.path.join(WORK, "other")
    os.makedirs(other)
    shutil.copy(TESSERA, other)
    shutil.copy(os.path.join(BUILD, "tessera_mpi.so"), other)
    with open(os.path.join(other, "tessera"), "ab") as file:
        file.write(b"x")
    done = run(["mpirun", "--oversubscribe", "-np", "2", TESSERA, "-c", "SELECT 1", ":", "-np", "1", os.path.join(other, "tessera"),
                "-c", "SELECT 1"])
    check_one_error(done, "rank 2 runs another build")
    check(done.returncode == 2, done.returncode)


def test_another_version():
    # The runner of the SQL tests says that it has none.
    done = run(["mpirun", "--oversubscribe", "-np", "1", TESSERA, "-c", "SELECT 1", ":", "-np", "1",
                os.path.join(BUILD, "sqllogictest")])
    check_one_error(done, "rank 1 runs another version of Tessera than rank 0")
    check(done.returncode == 2, done.returncode)


def test_no_mpi_without_a_launcher():
    done = subprocess.run([TESSERA, "-c", "SELECT 1"], env=dict(os.environ, LD_DEBUG="files"), capture_output=True, text=True,
                          timeout=LIMIT, stdin=subprocess.DEVNULL)
    check(done.returncode == 0 and "libc.so" in done.stderr, done.stderr)
    check("mpi" not in done.stderr, [line for line in done.stderr.splitlines() if "mpi" in line])


def test_directory_that_is_not_there():
    done = run(mpirun(3, "-readonly", os.path.join(WORK, "nowhere"), "-c", "SELECT 1"))
    check(done.returncode == 3 and len(done.own) == 1, done.returncode, done.stderr)


def test_a_rank_that_does_not_see_the_directory():
    os.makedirs(os.path.join(WORK, "private"))
    directory = database("private/db")
    hidden = another_disk(os.path.join(WORK, "private"), "/nowhere")

    def job(*options):
        end = [TESSERA, directory, *options, "-c", "SET replicate_below = 0; SELECT sum(a), max(b) FROM t"]
        return run(["mpirun", "--oversubscribe", "-np", "2", *end, ":", "-np", "1", "-x", "LD_PRELOAD=" + hidden, *end])
    done = job()
    check_one_error(done, "rank 2: ", "--scatter")
    check(done.returncode == 3, done.returncode)
    done = job("--scatter")
    check(done.stdout == "sum(a),max(b)\n4950,v4\n", done.stdout, done.stderr)


def test_received_tablets_beyond_the_budget_go_to_scratch():
    directory = database("scratch")
    stats = os.path.join(WORK, "scratch.stats")
    done = run(mpirun(3, directory, "--scatter", "--stats-file", stats, "-c",
                      "SET replicate_below = 0; SET scatter_memory = 1; SELECT sum(a) FROM t; SELECT sum(c) FROM t"))
    check("4950" in done.stdout and "2475" in done.stdout, done.stdout, done.stderr)
    sent = [int(line["bytes_scattered"]) for line in csv.DictReader(open(stats)) if line["section"] == ""]
    check(sent[0] == sent[1] + sent[2] > 0 and sent[3:] == [0, 0, 0], "sent again:", sent)


def test_results_stay_distributed():
    directory = database("distributed", rows=3000)
    query = ("SELECT count(*), sum(n), max(first) FROM (SELECT a, count(*) AS n, min(place) AS first FROM "
             "(SELECT a, row_number() OVER (PARTITION BY a % 700 ORDER BY c) AS place FROM t) x GROUP BY a) y")
    alone = run([TESSERA, directory, "-c", query]).stdout
    for above, stays in ((0, True), (2999, True), (3000, False)):
        script = f"SET replicate_below = 0; SET exchange_above = {above}; EXPLAIN (ANALYZE, PROGRAM) {query}; {query}"
        done = run(mpirun(3, directory, "-c", script))
        check(done.stdout.endswith(alone), done.stdout, done.stderr)
        sections = re.findall(r"its rows stay on the ranks; (\d+) went to the rank of their key", done.stdout)
        check((len(sections) > 0) == stays, above, done.stdout)
        check(all(0 < int(n) < 3000 for n in sections), done.stdout)


def test_heavy_keys_are_spread():
    directory = os.path.join(WORK, "heavy")
    check(run([TESSERA, directory, "-c", """
        CREATE TABLE often (k INTEGER, x BIGINT) WITH (tablet_rows = 1000);
        CREATE TABLE once (k INTEGER, y BIGINT) WITH (tablet_rows = 1000);
        INSERT INTO often SELECT CASE WHEN g % 2 = 0 THEN 7 WHEN g % 4 = 1 THEN NULL ELSE g END, g
        FROM generate_series(1, 60000) s(g);
        INSERT INTO once SELECT g, g FROM generate_series(1, 60000) s(g)"""]).returncode == 0, "no database")
    # The table with the greatest number of rows drives; a filter that drops none makes the other one smaller.
    heavy_probes = "SELECT count(*), count(y), sum(x + y) FROM often {} JOIN (SELECT * FROM once WHERE y > -1) o ON often.k = o.k"
    heavy_builds = "SELECT count(*), sum(x + y) FROM once JOIN (SELECT * FROM often WHERE x < 40000) o ON once.k = o.k"
    for query, keys, label in ((heavy_probes.format(""), 1, "often"), (heavy_probes.format("LEFT"), 2, "often"),
                               (heavy_builds, 1, "often"),
                               ("SELECT count(*) FROM once WHERE NOT EXISTS (SELECT 1 FROM often WHERE x < 40000 AND k = once.k)", 0, "often")):
        alone = run([TESSERA, directory, "-c", query]).stdout
        for ranks in (2, 4):
            stats = os.path.join(WORK, "heavy.stats")
            done = run(mpirun(ranks, directory, "--stats-file", stats, "-c",
                              "SET threads = 1; SET replicate_below = 0; SET join_exchange = on;"
                              f"EXPLAIN (ANALYZE, PROGRAM) {query}; {query}"))
            check(done.stdout.endswith(alone), query, alone, done.stdout, done.stderr)
            found = re.findall(r"heavy keys: (\d+), their rows spread", done.stdout)
            check(found == [str(keys)] * (keys > 0), query, "heavy keys:", found, done.stdout)
            if keys == 0:
                continue
            made = [int(line["rows_out"]) for line in csv.DictReader(open(stats))
                    if line["label"] == "scan " + label and line["section"] != ""][-ranks:]
            check(len(made) == ranks and max(made) < 1.2 * sum(made) / ranks, query, "rows by rank:", made)


def test_build_side_beyond_the_limit():
    directory = database("join")
    query = "SELECT count(*), sum(x.a + y.a) FROM t x, t y WHERE x.a = y.a"
    off = "SET join_exchange = off; "
    # With spans each rank has room for its part. What is not exchanged goes to all all the same.
    for settings in ("SET key_spans = off; ", off, "SET key_spans = off; " + off):
        done = run(mpirun(2, directory, "-c", settings + "SET broadcast_limit = 100; " + query))
        check(done.stdout.endswith("100,9900\n"), done.stdout, done.stderr)
    done = run(mpirun(2, directory, "-c", "SET key_spans = off; " + off + f"SET broadcast_limit = 100; EXPLAIN (PROGRAM) {query}"))
    check("build side broadcast to all" in done.stdout and ", also of more than 100 bytes" in done.stdout, done.stdout)


def test_build_side_beyond_the_memory():
    directory = made("join_memory", "CREATE TABLE t (a INTEGER, b INTEGER) WITH (tablet_rows = 65536);"
                     "INSERT INTO t SELECT g, g % 7 FROM generate_series(1, 1000000) x(g)")
    query = ("SET replicate_below = 0; SET key_spans = off; SET join_exchange = off; SET temp_file_limit = 0; "
             "SET broadcast_limit = 1000; SET memory_limit = 16777216; "
             "SELECT count(*), sum(x.b) FROM t x, t y WHERE x.a = y.a; SELECT count(*) FROM t")
    done = run(mpirun(2, directory, "--no-bail", "-c", query))
    # 24 MB for a million rows of two integers. (A rank may say so of its own share already.)
    check_one_error(done, "memory", "memory_limit")
    check("1000000" in done.stdout, done.stdout, done.stderr)


def test_memory_of_a_session():
    """SET session_memory holds on each rank, for this session's statements and for no longer than it is set."""
    directory = made("session_memory", "CREATE TABLE t WITH (tablet_rows = 65536) AS "
                     "SELECT x::integer AS a, x % 5 AS b, x * 0.5 AS c FROM range(2000000) AS r(x)")
    hungry = "SELECT count(*) FROM (SELECT a, max(c) FROM t GROUP BY a) AS q"
    limits = "SET replicate_below = 0; SET temp_file_limit = 0; SET key_spans = off; "
    for ranks in (1, 2):
        done = run(mpirun(ranks, directory, "--no-bail", "-c", limits + f"SHOW session_memory; SET session_memory = '16MB'; SHOW session_memory; {hungry}; "
                          f"SELECT max(b) FROM t; RESET session_memory; {hungry}"))
        check_one_error(done, "memory limit of the session exceeded", "SET session_memory")
        check(done.stdout.split() == ["session_memory", "0", "session_memory", "16777216", "max(b)", "4", "count(*)", "2000000"], ranks, done.stdout, done.stderr)
        # What is sorted lies in files then.
        done = run(mpirun(ranks, directory, "-c", "SET replicate_below = 0; SET session_memory = '16MB'; "
                          "SELECT count(*), min(state) FROM tessera_sessions(); SELECT count(*) FROM (SELECT a, c FROM t ORDER BY c, a LIMIT 1999999) AS q"))
        check(done.stdout.split() == ["count(*),min(state)", "1,active", "count(*)", "1999999"], ranks, done.stdout, done.stderr)


def test_products_beyond_the_budget_come_in_pieces():
    """What tests/sql/product_shares.test cannot: what EXPLAIN says, errors in the middle, and joins that need all rows."""
    directory = database("pieces", rows=3000, tablet_rows=100)
    limit = "SET replicate_below = 0; SET broadcast_limit = 4000; "
    product = "SELECT count(*), sum(x.a - y.a), min(y.b) FROM t x, t y WHERE x.a < y.a AND y.c < 100"
    alone = run([TESSERA, directory, "-c", product]).stdout
    for strategy, parts in (("auto", ("broadcast to all, more than 4000 bytes in pieces",)),
                            ("grid", ("broadcast to all, more than 4000 bytes in pieces", "more than 4000 bytes stay on their ranks"))):
        for ranks in (2, 3, 7):
            done = run(mpirun(ranks, directory, "-c", f"SET join_strategy = {strategy}; {limit}{product}; EXPLAIN (PROGRAM) {product}"))
            check(done.stdout.startswith(alone), strategy, ranks, done.stdout, done.stderr)
            check(all(part in done.stdout for part in parts), done.stdout)
    # One rank fails in one of the rounds, and the session goes on.
    done = run(mpirun(3, directory, "--no-bail", "-c", limit + "SELECT sum(2147483647 + (CASE WHEN x.a = 7 AND y.a = 2500 THEN 1 ELSE 0 END))"
                      " FROM t x, t y WHERE x.a < y.a; SELECT count(*) FROM t"))
    check_one_error(done, "rank ", "out of range")
    check("3000" in done.stdout, done.stdout)
    # A row without a match is known as such only when it has seen all of them.
    for join in ("SELECT count(*) FROM t x LEFT JOIN t y ON x.a < y.a AND y.c < 100",
                 "SELECT count(*) FROM t x WHERE NOT EXISTS (SELECT 1 FROM t y WHERE x.a < y.a AND y.c * 2 < x.c + 100)"):
        alone = run([TESSERA, directory, "-c", join]).stdout
        done = run(mpirun(3, directory, "-c", limit + join + f"; EXPLAIN (PROGRAM) {join}"))
        check(done.stdout.startswith(alone) and done.returncode == 0, alone, done.stdout, done.stderr)
        check("broadcast to all, also of more than 4000 bytes" in done.stdout, done.stdout)


def test_gpus_share_theta_joins():
    """On the emulated GPU, where it was built."""
    emulated = os.path.join(BUILD, "emulated", "tessera")
    if not os.path.exists(emulated):
        return
    directory = database("theta", rows=3000, tablet_rows=1000)
    # A table that every rank has; and one of whose tablets each rank has some.
    for settings in ("", "SET replicate_below = 0; "):
        for strategy in ("grid", "dp"):
            query = "SELECT count(*), sum(x.a - y.a) FROM t x, t y WHERE x.a < y.a AND y.c < 1500"
            alone = run([TESSERA, directory, "-c", query]).stdout
            stats = os.path.join(WORK, "theta.stats")
            command = mpirun(2, directory, "--device", "gpu", "--stats-file", stats, "-c",
                             f"{settings}SET join_strategy = {strategy}; EXPLAIN (ANALYZE, PROGRAM) {query}; {query}",
                             wrap=("env", f"TESSERA_NCCL={os.path.dirname(emulated)}/nccl.so"))
            done = run([emulated if part == TESSERA else part for part in command])
            check(done.stdout.endswith(alone), strategy, done.stdout, done.stderr)
            check(re.search(r"\n *2 .*rows of x\n", done.stdout), "not on both ranks:", done.stdout)
            driving = [int(line["rows_scanned"]) for line in csv.DictReader(open(stats))
                       if line["label"] == "rows of x" and line["section"] != ""][-2:]
            check(len(driving) == 2 and sum(driving) == 3000 and min(driving) > 1300, strategy, "rows by rank:", driving)


def test_a_rank_out_of_memory():
    directory = database("memory", rows=5000)
    # Ten million groups; 400 MB are enough to start, and to answer something smaller.
    query = ("SET threads = 1; SELECT count(*) FROM t; "
             "SELECT x.a, y.a, sum(x.c), sum(y.c) FROM t x, t y WHERE y.a < 2000 GROUP BY x.a, y.a LIMIT 1")
    limit = "ulimit -v 400000; exec \"$@\""
    if subprocess.run(["bash", "-c", limit, "bash", TESSERA, "-c", "SELECT 1"], capture_output=True).returncode != 0:
        return  # a sanitizer's shadow memory does not fit
    done = run(["bash", "-c", limit, "bash", TESSERA, directory, "-c", query])
    check_one_error(done, "memory")  # the limit is reached, or there is none left before
    check("5000" in done.stdout and done.returncode == 1, done.returncode, done.stdout)
    done = run(mpirun(3, directory, "-c", query, wrap=("bash", "-c", f"[ $OMPI_COMM_WORLD_RANK != 1 ] || {limit}; exec \"$@\"", "bash")))
    check_one_error(done, "rank 1: ", "memory")
    check("5000" in done.stdout, done.stdout, done.stderr)


def test_a_rank_is_killed():
    directory = database("killed", rows=3000)
    for statements in ("", LONG + ";\n"):
        for rank in (2, 0):
            job = Job(3, directory, statements)
            os.kill(job.ranks[rank], signal.SIGKILL)
            took, message = job.check_ends(5)
            check(f"rank {rank}" in message and "9" in message, message)
            own = [line for line in message.splitlines() if "has died" in line]
            first = 0 if rank != 0 else 1
            check(own == [f"tessera: rank {first}: rank {rank} on {socket.gethostname()} has died: the query is lost, the "
                          "database is whole"], message)


def test_a_rank_is_told_to_end():
    directory = database("told", rows=3000)
    script = os.path.join(WORK, "told.sql")
    with open(script, "w") as out:
        out.write((LONG + ";\n") * 20000)
    # Idle, in a statement, and while one statement follows the other, each of which the rank cancels.
    for rank in (1, 0):
        for statements, arguments in (("", ()), (LONG + ";\n", ("--no-bail",)), ("", ("--no-bail", "-f", script))):
            job = Job(3, directory, statements, *arguments)
            os.kill(job.ranks[rank], signal.SIGTERM)
            took, message = job.check_ends(5)
            if rank == 1:
                check("rank 1: ended by a signal: Terminated" in message, message)
            check("has died" not in message, message)


def test_a_frozen_rank_is_noticed():
    directory = database("frozen", rows=3000)
    for statements in ("SELECT count(*) FROM t;\n", LONG + ";\n"):
        for rank, who in ((2, "rank 0"), (0, "rank 1")):
            job = Job(3, directory, "SET rank_timeout = 2000; SELECT min(a) FROM t;\n" + statements)
            os.kill(job.ranks[rank], signal.SIGSTOP)
            took, message = job.check_ends(15)
            check(f"{who}: rank {rank} has given no sign of life for 2 s" in message, message)
            # (mpirun wakes the frozen rank to end it, and then it may say so.)
            others = message.replace(f"tessera: rank {rank}: ended by a signal: Terminated", "")
            check(others.count("tessera: ") == 1, "not one message:", message)
            check(took > 1.5, "took", took)


def test_a_frozen_rank_is_noticed_at_the_end():
    # The master has nothing more to say when it leaves, and MPI would wait for the rank.
    job = Job(3, database("frozen_end"), "SET rank_timeout = 2000; SELECT count(*) FROM t;\n")
    os.kill(job.ranks[1], signal.SIGSTOP)
    job.process.stdin.close()
    took, message = job.check_ends(15)
    check("rank 0: rank 1 has given no sign of life for 2 s" in message, message)


def test_a_rank_that_works_for_long_is_alive():
    # (Longer than a job takes to end, in which its ranks fall silent.)
    job = Job(3, database("alive", rows=3000), "SET rank_timeout = 4000; SELECT min(a) FROM t;\n" + LONG + ";\n")
    time.sleep(10)
    check(processes(job.directory) == job.ranks, "ranks are gone:", processes(job.directory))
    os.kill(job.ranks[0], signal.SIGTERM)
    took, message = job.check_ends(5)
    check("sign of life" not in message, message)


def test_ranks_that_were_frozen_together_go_on():
    job = Job(3, database("together"), "SET rank_timeout = 2000; SELECT count(*) FROM t;\n")
    for process in job.ranks.values():
        os.kill(process, signal.SIGSTOP)
    time.sleep(4)
    for process in job.ranks.values():
        os.kill(process, signal.SIGCONT)
    time.sleep(1)
    job.process.stdin.close()
    check(job.process.wait(timeout=20) == 0, "status")


def test_ctrl_c_ends_all():
    directory = database("ctrl_c", rows=3000)
    for statements in ("", LONG + ";\n"):
        job = Job(3, directory, statements)
        job.process.send_signal(signal.SIGINT)
        took, message = job.check_ends(8)
        check("has died" not in message, message)


def test_idle_ranks_take_no_core():
    job = Job(3, database("idle"), "SELECT count(*) FROM t;\n")

    def ticks():
        return sum(int(n) for p in job.ranks.values() for n in open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[11:13])
    before = ticks()
    time.sleep(2)
    used = (ticks() - before) / os.sysconf("SC_CLK_TCK")
    job.process.stdin.close()
    check(job.process.wait(timeout=20) == 0, "status")
    # Two ranks wait for the next statement, looking for it 1000 times a second each.
    check(used < 0.5, f"three idle ranks used {used:.2f} s of CPU in 2 s")


# ---- A shell over ranks -----------------------------------------------------------------------------------------------

def shell_over(ranks, directory):
    """`tessera --ranks N` at a terminal of its own."""
    return Terminal([TESSERA, "--ranks", str(ranks), directory], dict(ENVIRONMENT, TERM="vt100", HOME=WORK))


def check_nobody_is_left(directory):
    deadline = time.time() + 10
    while processes(directory) and time.time() < deadline:
        time.sleep(0.05)
    check(not processes(directory), "processes are left:", processes(directory))


def test_a_shell_over_ranks():
    directory = database("shell", rows=3000)
    shell = shell_over(3, directory)
    check("3 ranks" in shell.expect_prompt(), "the greeting does not say how many ranks")
    shell.type("SELECT max(a) AS most FROM t;\n")
    shell.expect("│ 2999 │")
    shell.expect_prompt()
    shell.type(LONG + ";\n")
    time.sleep(1)
    shell.type("\x03")  # Ctrl-C ends the statement, not the job
    shell.expect("canceling statement due to user request")
    shell.expect_prompt()
    shell.type("\x1a")  # Ctrl-Z would stop rank 0 where nothing continues it
    shell.type("SELECT nothing;\n")
    shell.expect('column "nothing" does not exist')
    shell.expect_prompt()
    shell.type("SELECT count(*) + 1 AS more FROM t;\n")
    shell.expect("│ 3001 │")
    shell.expect_prompt()
    shell.type(".quit\n")
    check(shell.leave() == 0, "status")
    shell.close()
    check_nobody_is_left(directory)


def test_a_shell_over_ranks_gives_the_terminal_back():
    script = f"{TESSERA} --ranks 2 {database('given_back')} -c 'SELECT count(*) AS n FROM t'; read line; echo got $line"
    shell = Terminal(["/bin/sh", "-c", script], dict(ENVIRONMENT, TERM="vt100"))
    shell.expect("│ 100 │")
    shell.type("a line\n")
    shell.expect("got a line")
    check(shell.leave() == 0, "status")
    shell.close()


def test_the_terminal_of_a_shell_over_ranks_goes_away():
    directory = database("hung_up", rows=3000)
    shell = shell_over(2, directory)
    shell.expect_prompt()
    shell.type(LONG + ";\n")
    time.sleep(1)
    check(len(processes(directory)) == 2, "the ranks are not there")
    shell.hang_up()
    check_nobody_is_left(directory)
    shell.close()


def test_a_shell_over_ranks_loses_a_rank():
    directory = database("shell_loses")
    shell = shell_over(3, directory)
    shell.expect_prompt()
    os.kill(processes(directory)[1], signal.SIGKILL)
    shell.expect("rank 0: rank 1 on ")
    shell.expect("signal 9")
    check(shell.leave() == 137, "status")
    shell.close()
    check_nobody_is_left(directory)


def test_the_option_ranks():
    directory = database("option")
    for done in (run([TESSERA, "--ranks", "2", directory, "-c", "SELECT sum(a) AS s FROM t"]),
                 run([TESSERA, "--ranks=2", directory], text="SELECT sum(a) AS s FROM t")):
        check((done.returncode, done.stdout) == (0, "s\n4950\n"), done)
    done = run([TESSERA, "--ranks", "2", "--stats", "json", directory, "-c", "SELECT sum(a) FROM t"])
    check('"rank":1,' in done.stderr and '"rank":2,' not in done.stderr, done.stderr)
    check_one_error(run([TESSERA, "--ranks", "none"]), "--ranks takes a number")
    check_one_error(run([TESSERA, "--hostfile", "hosts"]), "--ranks N")
    check_one_error(run([TESSERA, "--ranks", "2", "--hostfile", os.path.join(WORK, "no_hosts")]), "could not open the hostfile")
    check_one_error(run(["/usr/bin/env", "PATH=/nonexistent", TESSERA, "--ranks", "2"]), "could not start mpirun", "Open MPI")
    check_one_error(run(mpirun(3, "--ranks", "2", directory)), "--ranks 2, but mpirun started 3")
    # As somebody types it who has set nothing: more ranks than cores, and root in a container.
    bare = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("OMPI_ALLOW")}
    ranks = str(2 * os.cpu_count() + 1)
    done = subprocess.run([TESSERA, "--ranks", ranks, directory, "-c", "SELECT sum(a) AS s FROM t"], env=bare, text=True,
                          capture_output=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
    check((done.returncode, done.stdout) == (0, "s\n4950\n"), done)


# ---- ------------------------------------------------------------------------------------------------------------------

def test_without_mpi():
    alone = os.path.join(WORK, "alone")
    os.makedirs(alone)
    shutil.copy(TESSERA, alone)
    done = subprocess.run([os.path.join(alone, "tessera"), "-c", "SELECT 1"], env=dict(os.environ, OMPI_COMM_WORLD_SIZE="2"),
                          capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
    for part in ("without MPI: there is no ", os.path.join(alone, "tessera_mpi.so"), "make build/tessera_mpi.so"):
        check(done.returncode == 2 and part in done.stderr, done.returncode, done.stderr)
    done = run([os.path.join(alone, "tessera"), "--ranks", "2", "-c", "SELECT 1"])
    check_one_error(done, "cannot start ranks without MPI: there is no ", "make build/tessera_mpi.so")
    check(done.returncode == 2 and done.stdout == "", done.returncode, done.stdout)


def main():
    if has_mpi():
        return run_tests([f for name, f in globals().items() if name.startswith("test_")])
    print("no MPI in this build: only that is tested")
    return run_tests([test_without_mpi])


sys.exit(main())
