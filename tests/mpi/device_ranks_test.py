#!/usr/bin/env python3
"""Ranks with a GPU each, emulated: what goes from device to device, how often all ranks wait for each other, and errors of
one rank on its device.

    tests/mpi/device_ranks_test.py BUILD_DIR

Closes with the line "N passed, N failed". Without MPI or the emulated GPU in the build there is nothing to test.
"""

import csv
import os
import sys

import rank_jobs
from rank_jobs import BUILD, ENVIRONMENT, WORK, check, database, has_mpi, made, mpirun, run, run_tests

EMULATED = os.path.join(BUILD, "emulated")
SETTINGS = "SET replicate_below = 0; SET exchange_above = 0; "
# With other devices, which ranks meet in their first statement.
MEET = "SET key_spans = off; SELECT count(*) FROM t x, t y WHERE x.a = y.a; SET key_spans = on; "


def on_devices(ranks, directory, *arguments, links="off"):
    ENVIRONMENT["TESSERA_NCCL"] = links
    return run(mpirun(ranks, directory, "--device", "gpu", "--threads", "1", *arguments))


def both_links():
    return ("off", os.path.join(EMULATED, "nccl.so"))


def plan(directory, query, links, settings=""):
    done = on_devices(2, directory, "-c", SETTINGS + settings + "EXPLAIN (ANALYZE, PROGRAM) " + query, links=links)
    check(done.returncode == 0, done.stderr)
    return done.stdout


def test_groups_by_text_go_from_device_to_device():
    directory = database("groups")
    for links, name in zip(both_links(), ("MPI", "NCCL")):
        for query in ("SELECT b, count(*) FROM t GROUP BY b", "SELECT DISTINCT b, a FROM t",
                      "SELECT count(*) FROM (SELECT b, a % 3, sum(a) AS s FROM t GROUP BY b, a % 3) g WHERE s > 20"):
            text = plan(directory, query, links)
            check("groups exchanged by " + name in text, query, text)


def test_texts_are_told_once():
    directory = database("told")
    groups = "(SELECT b, a % {0} AS n, count(*) AS c FROM t GROUP BY b, a % {0})"
    rows = "SELECT x.b, sum(x.c), sum(y.c) FROM {0} x, {1} y WHERE x.b = y.b AND x.n = y.n GROUP BY x.b".format(
        groups.format(3), groups.format(4))
    alone = run([rank_jobs.TESSERA, "-csv", directory, "--device", "gpu", "-c", rows + " ORDER BY 1"])
    check(alone.returncode == 0, alone.stderr)
    for ranks in (2, 3):
        done = on_devices(ranks, directory, "-csv", "-c", SETTINGS + rows + " ORDER BY 1")
        check(done.stdout == alone.stdout, ranks, done.stdout, "instead of", alone.stdout, done.stderr)


def test_groups_that_nobody_reads_stay_on_their_devices():
    directory = made("unwanted", "SET tablet_rows = 1000; CREATE TABLE d (k INTEGER, v INTEGER) WITH (distribute_by = 'k');"
               "INSERT INTO d SELECT i * 7919 % 3001, i FROM generate_series(1, 20000) g(i)")
    # A group by the key is on one rank, whole. One by another column is a part of several, of which none is wanted by itself.
    for key, most in (("k", 75000), ("v % 1500", 140000)):
        query = f"SELECT {key} AS k, sum(v) AS s FROM d GROUP BY {key} HAVING sum(v) > {most} ORDER BY 1"
        text = plan(directory, query, "off")
        check("groups left on the device" in text, query, text)
        for above in (0, 1000000):
            same_rows(directory, query, f"SET exchange_above = {above}; ")


def test_very_many_texts_go_through_the_hosts():
    data = os.path.join(WORK, "many.csv")
    with open(data, "w") as out:
        out.writelines(f"{i},t{i * 7919 % 139999}\n" for i in range(140000))
    directory = made("many", f"CREATE TABLE m (i INTEGER, s TEXT) WITH (tablet_rows = 70000); COPY m FROM '{data}'")
    # Each rank has over 2^16 of them, or an eighth.
    for where, goes in (("", False), ("WHERE i % 8 = 1", True)):
        text = plan(directory, f"SELECT count(*) FROM (SELECT s, count(*) AS c FROM m {where} GROUP BY s) g", "off")
        check("went to the rank of their key" in text and ("groups exchanged by MPI" in text) == goes, where, text)


def collectives(directory, query):
    """Operations of all ranks in one statement, once they have met."""
    stats = os.path.join(WORK, "collectives.stats")
    if os.path.exists(stats):
        os.remove(stats)
    done = on_devices(2, directory, "--stats-file", stats, "-c", SETTINGS + MEET + query)
    check(done.returncode == 0, done.stderr)
    lines = [line for line in csv.DictReader(open(stats)) if line["section"] == "" and line["rank"] == "0"]
    return int(lines[-1]["collectives"])


def test_how_often_ranks_wait_for_all():
    directory = database("collectives")
    # By query, at most. Each has the command and the program's bytes, and three times that all are well.
    for query, most in (
            ("SELECT count(*) FROM t x, t y WHERE x.a = y.a", 5),
            ("SELECT count(*) FROM t x, t y WHERE x.a = y.a + 1", 7),
            ("SELECT x.a % 50, count(*) FROM t x, t y WHERE x.a = y.a GROUP BY x.a % 50", 8),
            ("SELECT x.a % 50, count(*) FROM t x, t y WHERE x.a = y.a + 1 GROUP BY x.a % 50", 10),
            ("SELECT b, count(*) FROM t GROUP BY b", 9),
            ("SELECT x.b, count(*) FROM t x, t y WHERE x.a = y.a + 1 GROUP BY x.b", 11)):
        found = collectives(directory, query)
        print(f"{found} of {most}:", query)
        check(0 < found <= most, found, "instead of", most, "for", query)


BOTH_SIDES = "SET key_spans = off; SET join_exchange = on; "


def test_both_sides_of_a_join_go_from_device_to_device():
    directory = database("sides")
    for links, name in zip(both_links(), ("MPI", "NCCL")):
        for query in ("SELECT y.b, count(*) FROM t x, t y WHERE x.a = y.a GROUP BY y.b",
                      "SELECT y.b, count(*) FROM t x LEFT JOIN t y ON x.a = y.a + 3 AND x.a % 2 = y.a % 2 GROUP BY y.b",
                      "SELECT count(*) FROM t x WHERE NOT EXISTS (SELECT 1 FROM t y WHERE y.a = x.a + 1)",
                      "SELECT x.b, count(*) FROM t x, t y, t z WHERE x.a = y.a AND y.b = z.b GROUP BY x.b"):
            text = plan(directory, query, links, BOTH_SIDES)
            check("both sides of the join exchanged by " + name in text, query, text)
    # Texts that each rank numbers by itself are no keys, and those of chunks are not told: the hosts exchange such rows.
    text = plan(directory, "SELECT count(*) FROM t x, t y WHERE x.b = y.b", "off", BOTH_SIDES)
    check("both sides of the join" not in text and "went to the rank of their key" in text, text)


def same_rows(directory, query, settings, *arguments, ranks=2):
    """The output on ranks with devices, which is that of one host."""
    alone = run([rank_jobs.TESSERA, "-csv", directory, "--device", "host", "-c", query])
    done = on_devices(ranks, directory, "-csv", *arguments, "-c", SETTINGS + settings + query)
    check(done.stdout == alone.stdout, arguments, query, done.stdout, "instead of", alone.stdout, done.stderr)


def test_sides_that_do_not_fit_go_through_the_hosts():
    directory = made("sides", "SET tablet_rows = 65536; CREATE TABLE s AS SELECT i::BIGINT * 3 AS k, i::BIGINT * "
               "1234567 AS v, i::BIGINT * 7654321 AS w FROM generate_series(1, 500000) g(i);"
               "CREATE TABLE h AS SELECT i * 3 AS k, i % 9000 AS a FROM generate_series(1, 200000) g(i);"
               "CREATE TABLE f AS SELECT i % 9000 AS a, i AS w FROM generate_series(1, 200000) g(i)")
    apart = "SET key_spans = off; "  # so that both sides have to be exchanged
    query = "SELECT count(*), sum(x.v - y.v), max(x.w + y.w) FROM s x, s y WHERE x.k = y.k"
    for memory, exchanged in (("64MB", True), ("1GB", False)):  # by itself
        done = on_devices(2, directory, "--gpu-memory", memory, "-c", SETTINGS + apart + "EXPLAIN (PROGRAM) " + query)
        check(("rows exchanged by key" in done.stdout) == exchanged, memory, done.stdout, done.stderr)
    for memory, by_devices in (("64MB", False), ("1GB", True)):
        same_rows(directory, query, BOTH_SIDES, "--gpu-memory", memory)
        done = on_devices(2, directory, "--gpu-memory", memory, "-c", SETTINGS + BOTH_SIDES + "EXPLAIN (ANALYZE, PROGRAM) " + query)
        check(("both sides of the join exchanged by" in done.stdout) == by_devices, memory, done.stdout, done.stderr)
    # What probes makes a join table, which only the device may have.
    same_rows(directory, "SELECT count(*), sum(f.w), sum(x.v) FROM f, h, s x WHERE f.a = h.a AND h.k = x.k AND x.v % 300 = 0",
              BOTH_SIDES, "--gpu-memory", "24MB")
    # A host without room says so, and no rank waits.
    for limit in (20, 30, 40):
        done = on_devices(2, directory, "--gpu-memory", "24MB", "--no-bail", "-c", SETTINGS + BOTH_SIDES +
                          f"SET memory_limit = {limit}000000; SET temp_file_limit = 2000000; {query}; SELECT 4950")
        check("memory limit exceeded" in done.stderr or done.returncode == 0, limit, done.stdout, done.stderr)


def test_texts_beside_a_table_that_is_exchanged():
    directory = made("beside", "SET tablet_rows = 2000; CREATE TABLE fact AS SELECT i * 7919 % 20000 AS k, "
               "i % 30 AS d FROM generate_series(1, 40000) g(i);"
               "CREATE TABLE big AS SELECT i AS k, i * 12345 AS v, i % 10 AS x FROM generate_series(1, 20000) g(i);"
               "CREATE TABLE dim AS SELECT i AS id, 'n' || i % 3 AS name FROM generate_series(0, 6000) g(i)")
    query = ("SELECT d.name, count(*), sum(b.v) FROM fact f, big b, dim d WHERE f.k = b.k AND b.x < 9 AND f.d = d.id "
             "GROUP BY d.name ORDER BY d.name")
    for ranks in (2, 3):
        same_rows(directory, query, "SET broadcast_limit = 400000; ", ranks=ranks)
    text = on_devices(2, directory, "-c", SETTINGS + "SET broadcast_limit = 400000; EXPLAIN (ANALYZE, PROGRAM) " + query).stdout
    check("both sides of the join exchanged by" in text and "rows of all ranks by" in text, text)


def test_an_error_of_one_rank_is_that_of_all():
    directory = database("errors")
    # Row 16 is in the third tablet, so on rank 0 of 2; row 10 is on rank 1.
    for row, links, settings in ((16, "off", ""), (10, "off", ""), (16, both_links()[1], ""), (10, both_links()[1], ""),
                                 (16, "off", BOTH_SIDES), (10, both_links()[1], BOTH_SIDES)):
        fails = f"(2147483647 + (CASE WHEN a = {row} THEN 1 ELSE 0 END))"
        bad = f"(SELECT a, b, {fails} AS n FROM t)"
        queries = [
            f"SELECT sum({fails}) FROM t", f"SELECT {fails} FROM t", f"SELECT {fails} FROM t ORDER BY 1",
            # While a join table is made; while it is probed, with groups after; while groups are made.
            f"SELECT count(*) FROM t x, {bad} y WHERE x.a = y.a AND y.n > 0",
            f"SELECT x.b, sum(x.n) FROM {bad} x, t y WHERE x.a = y.a GROUP BY x.b",
            f"SELECT b, max({fails}) FROM t GROUP BY b",
            f"SELECT sum(g.m) FROM (SELECT b, max({fails}) AS m FROM t GROUP BY b) g, t WHERE g.b = t.b",
            # In what reads distributed groups.
            f"SELECT x.b, x.a + 2147483647 - {row} + 1 FROM (SELECT b, a, count(*) AS c FROM t GROUP BY b, a) x"
            f" WHERE x.a = {row}"]
        done = on_devices(2, directory, "-csv", "--no-bail", "-c", SETTINGS + settings + "; SELECT 4950; ".join(queries) + "; SELECT sum(a) FROM t",
                          links=links)
        errors = [line for line in done.own if "out of range" in line]
        check(len(errors) == len(queries) == len(done.own), row, links, done.stderr)
        check(done.stdout.count("4950") >= len(queries), "the session does not go on:", done.stdout, done.stderr)


def main():
    if not has_mpi() or not os.path.exists(os.path.join(EMULATED, "tessera")):
        print("[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] device_ranks_test: no MPI or no emulated GPU in this build")
        return 0
    rank_jobs.TESSERA = os.path.join(EMULATED, "tessera")
    return run_tests([f for name, f in globals().items() if name.startswith("test_")])


sys.exit(main())
