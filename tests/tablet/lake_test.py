#!/usr/bin/env python3
"""DuckLake catalogs in SQLite: lakes that DuckDB's extension makes, read beside it.

    tests/tablet/lake_test.py BUILD_DIR

Needs tessera_arrow.so, pyarrow in build/venv, and build/ducklake_packages (tests/setup ducklake); without them the test is skipped.
Ends with "N passed, N failed".
"""

import csv
import glob
import io
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESSERA = os.path.join(BUILD, "tessera")
PYTHON = os.path.join(ROOT, "build", "venv", "bin", "python")
PACKAGES = os.path.join(ROOT, "build", "ducklake_packages")


def skip(why):
    print(f"[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] lake_test: {why}")
    sys.exit(0)


try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    if os.path.exists(PYTHON) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.join(ROOT, "build", "venv")):
        os.execv(PYTHON, [PYTHON, *sys.argv])
    skip("there is no pyarrow in build/venv: make arrow")
if not os.path.exists(os.path.join(BUILD, "tessera_arrow.so")):
    skip("there is no tessera_arrow.so: make arrow")
if not os.path.isdir(PACKAGES):
    skip("there is no build/ducklake_packages: tests/setup ducklake")
sys.path.insert(0, PACKAGES)
import duckdb  # noqa: E402

WORK = tempfile.mkdtemp(prefix="tessera_lake_test.")
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def tessera(*arguments, status=0):
    done = subprocess.run([TESSERA, "-csv", "-noheader", "-bail", "--threads", "2", *arguments], cwd=WORK, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300, env=ENVIRONMENT)
    if done.returncode != status:
        raise AssertionError(f"{arguments}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def fails(sql, *parts):
    done = tessera("-c", sql, status=1)
    for part in parts:
        if part not in done.stderr:
            raise AssertionError(f"{sql}: no {part!r} in\n{done.stderr}")


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}\nfound    {found!r}\nexpected {expected!r}")


class Lake:
    """A lake that DuckDB makes, in a folder `name` of WORK. Both engines run in WORK."""

    def __init__(self, name, options=""):
        self.name = name
        self.catalog = f"{name}.sqlite"
        os.chdir(WORK)
        for old in glob.glob(f"{name}*"):
            shutil.rmtree(old) if os.path.isdir(old) else os.remove(old)
        self.connection = duckdb.connect()
        for extension in ("sqlite_scanner", "ducklake"):
            file, = glob.glob(f"{PACKAGES}/duckdb_extension_{extension}/**/*.duckdb_extension", recursive=True)
            self.connection.execute(f"LOAD '{file}'")
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute(f"ATTACH 'ducklake:sqlite:{self.catalog}' AS lake (DATA_PATH '{name}'{options})")

    def run(self, *statements):
        for statement in statements:
            self.connection.execute(statement)

    def attach(self, options=""):
        return f"ATTACH 'ducklake:sqlite:{self.catalog}' AS lake{options};"

    def rows(self, sql):
        """What DuckDB answers, as CSV has it."""
        self.connection.execute(f"COPY ({sql}) TO '{self.name}.answer' (FORMAT csv, HEADER false)")
        with open(f"{self.name}.answer", newline="") as file:
            return list(csv.reader(file))

    def same(self, *queries, options=""):
        for sql in queries:
            found = list(csv.reader(io.StringIO(tessera("-c", self.attach(options), "-c", sql).stdout)))
            equal(found, self.rows(sql), sql)

    def versions(self):
        return [row[0] for row in self.connection.execute(
            "SELECT snapshot_id FROM __ducklake_metadata_lake.ducklake_snapshot ORDER BY 1").fetchall()]

    def change_catalog(self, *statements):
        self.connection.execute("DETACH lake")
        connection = sqlite3.connect(self.catalog)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()


def test_types():
    lake = Lake("types")
    columns = {
        "i8": ("TINYINT", "(i % 250 - 125)"), "i16": ("SMALLINT", "i * 3 - 200"), "i32": ("INTEGER", "i * 1000003"),
        "i64": ("BIGINT", "i * 10000000019 - 5"), "u8": ("UTINYINT", "i % 256"), "u16": ("USMALLINT", "i * 60"),
        "u32": ("UINTEGER", "i * 4000000"), "u64": ("UBIGINT", "i * 100000000000"), "f32": ("FLOAT", "i / 8"),
        "f64": ("DOUBLE", "i / 7"), "d9": ("DECIMAL(9, 2)", "i * 1.25"), "d38": ("DECIMAL(38, 5)", "i * 12345678901234567890.12345"),
        "b": ("BOOLEAN", "i % 3 = 0"), "s": ("VARCHAR", "'a ''text'', ' || i"), "bl": ("BLOB", "encode('b' || i)"),
        "da": ("DATE", "DATE '1999-12-28' + i::INTEGER"), "tm": ("TIME", "TIME '01:02:03.25' + INTERVAL (i) MINUTE"),
        "ts": ("TIMESTAMP", "TIMESTAMP '2020-02-28 23:59:59.123456' + INTERVAL (i) HOUR"),
        "tz": ("TIMESTAMPTZ", "TIMESTAMPTZ '2020-02-28 23:59:59.5+00' + INTERVAL (i) HOUR"),
        "u": ("UUID", "md5(i::VARCHAR)::UUID"), "j": ("JSON", "'{\"a\":' || i || '}'")}
    lake.run("CREATE TABLE lake.t (k INTEGER, " + ", ".join(f"{c} {t}" for c, (t, _) in columns.items()) + ")")

    def insert(first, rows):
        values = ", ".join(f"CASE WHEN i % 11 = 5 THEN NULL ELSE {v} END" for _, v in columns.values())
        lake.run(f"INSERT INTO lake.t SELECT i, {values} FROM range({first}, {first + rows}) r(i)")

    def compare():
        # (The engines write blobs, floats and JSON in other ways.)
        shown = {"bl": "octet_length(bl)", "f64": "CAST(f64 * 7 AS BIGINT)", "f32": "CAST(f32 * 8 AS BIGINT)", "j": "CAST(j AS VARCHAR)"}
        for column in columns:
            one = shown.get(column, column)
            lake.same(f"SELECT k, {one} FROM lake.t ORDER BY k", f"SELECT count({column}) FROM lake.t",
                      f"SELECT k FROM lake.t WHERE {column} IS NULL ORDER BY 1")
        for column in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "d9", "d38", "da", "tm", "ts", "tz", "s"):
            lake.same(f"SELECT min({column}), max({column}) FROM lake.t",
                      f"SELECT count(*) FROM lake.t WHERE {column} >= (SELECT {column} FROM lake.t WHERE k = 3)")

    insert(0, 7)  # so few rows are in the catalog itself
    equal(glob.glob("types/**/*.parquet", recursive=True), [])
    compare()
    insert(100, 300)
    equal(len(glob.glob("types/**/*.parquet", recursive=True)), 1)
    compare()
    lake.run("DELETE FROM lake.t WHERE k IN (2, 150)")
    compare()


def test_refused_types():
    lake = Lake("refused")
    for name, type, value in (("l", "INTEGER[]", "[1]"), ("s", "STRUCT(a INTEGER)", "{'a': 1}"), ("h", "HUGEINT", "1"),
                              ("iv", "INTERVAL", "INTERVAL 1 DAY"), ("tt", "TIMETZ", "'10:00:00+01'::TIMETZ")):
        for rows in (2, 50):  # in the catalog, and in a file
            lake.run(f"CREATE OR REPLACE TABLE lake.t (k INTEGER, {name} {type})",
                     f"INSERT INTO lake.t SELECT i, {value} FROM range({rows}) r(i)")
            lake.same("SELECT count(*), sum(k) FROM lake.t")
            kind = {"l": "list", "s": "struct", "h": "int128", "iv": "interval", "tt": "timetz"}[name]
            fails(f"{lake.attach()} SELECT * FROM lake.t", f'column "{name}"', f"type {kind} of DuckLake is not supported")


def test_changes_and_snapshots():
    lake = Lake("changes")
    lake.run("CREATE TABLE lake.t (a INTEGER, b VARCHAR, c INTEGER)",
             "INSERT INTO lake.t SELECT i, 'b' || i, i * 2 FROM range(1000) r(i)",
             "INSERT INTO lake.t VALUES (-1, 'few', NULL), (-2, NULL, 5)",
             "DELETE FROM lake.t WHERE a = 500",                   # the catalog says which
             "DELETE FROM lake.t WHERE a BETWEEN 100 AND 300",     # a file does
             "UPDATE lake.t SET c = -c WHERE a % 10 = 3",
             "DELETE FROM lake.t WHERE a = -1",
             "ALTER TABLE lake.t ADD COLUMN n INTEGER DEFAULT 42",
             "ALTER TABLE lake.t ADD COLUMN d DATE DEFAULT '2024-02-29'",
             "ALTER TABLE lake.t ADD COLUMN x VARCHAR",
             "INSERT INTO lake.t VALUES (2000, 'new', 1, 2, NULL, 'x')",
             "ALTER TABLE lake.t RENAME COLUMN b TO bb",
             "ALTER TABLE lake.t DROP COLUMN c",
             "ALTER TABLE lake.t ADD COLUMN c VARCHAR DEFAULT 'another c'",
             "ALTER TABLE lake.t ALTER a TYPE BIGINT",
             "INSERT INTO lake.t SELECT i * 10000000000, 'big', i, NULL, 'y', 'z' FROM range(1, 60) r(i)",
             "DELETE FROM lake.t WHERE a > 300000000000",
             "ALTER TABLE lake.t RENAME TO u",
             "CREATE SCHEMA lake.s", "CREATE TABLE lake.s.t AS SELECT i AS k FROM range(100) r(i)",
             "INSERT INTO lake.s.t SELECT i FROM range(200, 300) r(i)",
             "CREATE TABLE lake.gone AS SELECT i AS k FROM range(50) r(i)", "DROP TABLE lake.gone",
             "DELETE FROM lake.s.t")
    queries = ("SELECT * FROM lake.{} ORDER BY ALL", "SELECT count(*) FROM lake.{}", "SELECT sum(a), min(a), max(a) FROM lake.{}",
               "SELECT count(*) FROM lake.{} WHERE a < 250")
    lake.same(*(q.format("u") for q in queries), "SELECT count(*) FROM lake.s.t", "SELECT count(*) FROM lake.main.u")
    times = dict(lake.connection.execute("SELECT snapshot_id, CAST(snapshot_time AS VARCHAR) FROM "
                                         "__ducklake_metadata_lake.ducklake_snapshot").fetchall())
    for version in lake.versions()[1:]:
        for moment in (f"VERSION => {version}", f"TIMESTAMP => TIMESTAMPTZ '{times[version]}'"):
            for table in ("t", "u"):
                sql = f"SELECT * FROM lake.{table} AT ({moment})"
                try:
                    want = sorted(lake.rows(sql))
                except duckdb.CatalogException:
                    fails(f"{lake.attach()} {sql}", f'has no table "{table}"')
                    continue
                found = tessera("-c", lake.attach(), "-c", sql, "-c", f"SELECT count(*), sum(a) FROM lake.{table} z AT ({moment})").stdout
                found = list(csv.reader(io.StringIO(found)))
                equal(sorted(found[:-1]), want, sql)
                equal(found[-1], [str(len(want)), str(sum(int(row[0]) for row in want) if want else "")], sql)
        answer = tessera("-c", lake.attach(f" (SNAPSHOT_VERSION {version})"), "-c", "SHOW DATABASES", "-c",
                         f"SELECT count(*) FROM lake.{'u' if version >= 18 else 't'}").stdout.split("\n")
        equal(answer[-2:-1], lake.rows(f"SELECT count(*) FROM lake.{'u' if version >= 18 else 't'} AT (VERSION => {version})")[0])
    lake.same("SELECT count(*) FROM lake.gone AT (VERSION => 22)")
    joined = "SELECT count(*) FROM lake.t AT (VERSION => 3) AS x JOIN lake.u AS y AT (VERSION => 18) ON x.a = y.a"
    equal(tessera("-c", lake.attach(), "-c", joined).stdout, tessera("-c", lake.attach(), "-c", "SELECT count(*) FROM lake.u WHERE a < 1000").stdout)
    first = tessera("-c", lake.attach(f" (SNAPSHOT_TIME '{times[2]}')"), "-c", "SELECT count(*) FROM lake.t").stdout
    equal(first, "1000\n")
    fails(f"{lake.attach()} SELECT * FROM lake.t AT (VERSION => 99)", "has no snapshot 99")
    fails(f"{lake.attach()} SELECT * FROM lake.t AT (TIMESTAMP => TIMESTAMPTZ '1999-01-01 00:00:00+00')", "no snapshot at 1999")
    fails(lake.attach(" (SNAPSHOT_VERSION 99)"), "has no snapshot 99")
    fails(f"{lake.attach()} SELECT * FROM lake.t AT (VERSION => NULL)", "AT takes a constant that is not NULL")
    fails("CREATE TABLE t (a INT); SELECT * FROM t AT (VERSION => 1)", "is no attached DuckLake catalog")


def test_merged_and_flushed_files():
    lake = Lake("merged")
    lake.run("CREATE TABLE lake.t (a INTEGER, b VARCHAR)")
    for i in range(4):
        lake.run(f"INSERT INTO lake.t SELECT {i} * 100 + i, 'b' FROM range(40) r(i)")
    lake.run("CALL ducklake_merge_adjacent_files('lake')", "DELETE FROM lake.t WHERE a % 7 = 0",
             "INSERT INTO lake.t VALUES (1000, 'x'), (1001, 'y')", "DELETE FROM lake.t WHERE a = 1001",
             "DELETE FROM lake.t WHERE a % 100 = 5", "CALL ducklake_flush_inlined_data('lake')", "DELETE FROM lake.t WHERE a % 5 = 1",
             "INSERT INTO lake.t VALUES (1002, 'x')", "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)")
    kinds = dict(lake.connection.execute("SELECT count(partial_max) > 0, count(*) FROM __ducklake_metadata_lake.ducklake_data_file").fetchall())
    equal(list(kinds), [True], "files of several snapshots")
    for version in lake.versions()[1:]:
        # (What DuckDB 1.5 sorts of a merged file by itself has wrong values.)
        sql = f"SELECT * FROM lake.t AT (VERSION => {version})"
        found = list(csv.reader(io.StringIO(tessera("-c", lake.attach(), "-c", sql).stdout)))
        equal(sorted(found), sorted(lake.rows(sql)), sql)
        lake.same(f"SELECT count(*) FROM lake.t AT (VERSION => {version})")
    deletions = lake.connection.execute("SELECT count(*) FROM __ducklake_metadata_lake.ducklake_delete_file WHERE partial_max IS NOT NULL")
    print("# files of deletions of several snapshots:", deletions.fetchone()[0])


def test_added_files():
    lake = Lake("added")
    lake.run("CREATE TABLE lake.t (a INTEGER, b VARCHAR, p INTEGER)", "INSERT INTO lake.t SELECT i, 'own', 0 FROM range(30) r(i)")
    os.makedirs("added_files/p=7")
    pq.write_table(pa.table({"b": ["x", None, "z"], "A": pa.array([1, 2, 3], pa.int32())}), "added_files/p=7/f.parquet", row_group_size=2)
    lake.run("CALL ducklake_add_data_files('lake', 't', 'added_files/p=7/f.parquet', hive_partitioning => true)",
             "DELETE FROM lake.t WHERE a = 3")
    lake.same("SELECT * FROM lake.t ORDER BY ALL", "SELECT p, count(*), sum(a) FROM lake.t GROUP BY p ORDER BY p")
    lake.run("ALTER TABLE lake.t RENAME COLUMN b TO c", "ALTER TABLE lake.t RENAME COLUMN a TO b")
    lake.same("SELECT * FROM lake.t ORDER BY ALL")


def test_partitioned_and_many_groups():
    lake = Lake("groups")
    lake.run("CALL lake.set_option('parquet_row_group_size', 2048)", "CREATE TABLE lake.t (a INTEGER, b VARCHAR, c DOUBLE)",
             "ALTER TABLE lake.t SET PARTITIONED BY (b)",
             "INSERT INTO lake.t SELECT i, 'p' || (i % 3), i / 4 FROM range(30000) r(i)", "DELETE FROM lake.t WHERE a % 1000 < 100",
             "DELETE FROM lake.t WHERE a BETWEEN 9000 AND 20000")
    queries = ("SELECT count(*), sum(a), min(b), CAST(sum(c) AS BIGINT) FROM lake.t", "SELECT b, count(*), sum(a) FROM lake.t GROUP BY b ORDER BY b",
               "SELECT a, b, CAST(c * 4 AS BIGINT) FROM lake.t WHERE a BETWEEN 995 AND 1105 ORDER BY a", "SELECT count(*) FROM lake.t WHERE b = 'p1'",
               "SELECT count(*) FROM lake.t x JOIN lake.t y ON x.a = y.a + 3")
    lake.same(*queries)
    if os.path.exists(os.path.join(BUILD, "tessera_mpi.so")) and shutil.which("mpirun"):
        for sql in queries:
            found = tessera("--ranks", "2", "-c", lake.attach() + sql).stdout
            equal(list(csv.reader(io.StringIO(found))), lake.rows(sql), "2 ranks: " + sql)


def test_reading():
    """What is read of a lake, and when."""
    lake = Lake("reading")
    lake.run("CREATE TABLE lake.t (a INTEGER)", "CREATE VIEW lake.v AS SELECT a FROM lake.t",
             "INSERT INTO lake.t SELECT i FROM range(100) r(i)")
    fails(f"{lake.attach()} SELECT * FROM lake.v", "a view of an attached database (lake.v) is not supported")
    fails(f"{lake.attach()} INSERT INTO lake.t VALUES (1)", "is attached, and can only be read")
    fails(f"{lake.attach()} SELECT * FROM lake.tt", 'Perhaps you meant table "lake.t"')
    equal(tessera("d", "-c", lake.attach(), "-c", "CREATE TABLE copy AS SELECT * FROM lake.t WHERE a >= 10", "-c",
                  "INSERT INTO copy SELECT * FROM lake.t", "-c", "SELECT count(*), sum(a) FROM copy", "-c",
                  "CREATE TABLE whole AS SELECT * FROM lake.t; SELECT sum(a) FROM whole").stdout,
          f"190,{sum(range(100)) + sum(range(10, 100))}\n{sum(range(100))}\n")
    # Another process commits while a session has the lake attached.
    session = subprocess.Popen([TESSERA, "-csv", "-noheader"], cwd=WORK, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(sql):
        session.stdin.write(sql + "\n")
        session.stdin.flush()
        return session.stdout.readline()

    equal(ask(f"{lake.attach()} SELECT count(*) FROM lake.t;"), "100\n")
    lake.run("INSERT INTO lake.t VALUES (7)")
    equal(ask("SELECT count(*) FROM lake.t;"), "101\n")
    equal(ask("BEGIN; SELECT count(*) FROM lake.t;"), "101\n")
    lake.run("DELETE FROM lake.t WHERE a < 50")
    equal(ask("SELECT count(*) FROM lake.t;"), "101\n")
    equal(ask("COMMIT; SELECT count(*) FROM lake.t;"), "50\n")
    session.stdin.close()
    equal(session.wait(60), 0)
    # From another folder, where the catalog's relative path means nothing.
    os.makedirs("elsewhere", exist_ok=True)
    shutil.move("reading", "elsewhere/data")
    shutil.move(lake.catalog, "elsewhere/metadata.ducklake")
    fails("ATTACH 'ducklake:elsewhere/metadata.ducklake' AS lake; SELECT * FROM lake.t", "DATA_PATH")
    for name in ("ducklake:sqlite:elsewhere/metadata.ducklake", "ducklake:elsewhere/metadata.ducklake", "elsewhere/metadata.ducklake"):
        equal(tessera("-c", f"ATTACH '{name}' AS lake (DATA_PATH 'elsewhere/data', READ_ONLY); SELECT count(*) FROM lake.t").stdout, "50\n")
    equal(tessera("-c", "ATTACH 'elsewhere/metadata.ducklake' (TYPE ducklake, DATA_PATH 'elsewhere/data/'); "
                        "SELECT count(*) FROM metadata.t").stdout, "50\n")


def test_broken_lakes():
    def broken(name, *statements):
        lake = Lake(name)
        lake.run("CREATE TABLE lake.t (a INTEGER)", "INSERT INTO lake.t SELECT i FROM range(100) r(i)", "INSERT INTO lake.t VALUES (5)",
                 "DELETE FROM lake.t WHERE a BETWEEN 20 AND 60")
        lake.change_catalog(*statements)
        return lake.attach()

    fails(broken("b1", "UPDATE ducklake_metadata SET value = '9.7' WHERE key = 'version'"), 'version "9.7"', "Version 1.0 is read")
    fails(broken("b2", "DROP TABLE ducklake_metadata"), "is no DuckLake catalog")
    fails(broken("b3", "UPDATE ducklake_data_file SET encryption_key = 'abc'") + "SELECT * FROM lake.t", "is encrypted")
    fails(broken("b4", "UPDATE ducklake_data_file SET file_format = 'vortex'") + "SELECT * FROM lake.t", 'format "vortex"')
    fails(broken("b5", "UPDATE ducklake_delete_file SET format = 'puffin'") + "SELECT * FROM lake.t", 'format "puffin"')
    fails(broken("b6", "UPDATE ducklake_data_file SET path = 's3://bucket/x.parquet', path_is_relative = 0") + "SELECT * FROM lake.t",
          "is on another machine")
    fails(broken("b7", "UPDATE ducklake_data_file SET path = 'gone.parquet'") + "SELECT * FROM lake.t", "gone.parquet", "DATA_PATH")
    fails(broken("b8", "UPDATE ducklake_inlined_data_1_1 SET a = 'no number'") + "SELECT * FROM lake.t", "ducklake_inlined_data_1_1",
          'column "a", row_id 100', "no number")
    fails(broken("b9", "INSERT INTO ducklake_column SELECT 2, begin_snapshot, NULL, table_id, 2, 'A', 'int32', NULL, NULL, 1, NULL, '', '' "
                 "FROM ducklake_column"), "the name of a column")
    fails(broken("b10", "DELETE FROM ducklake_schema_versions") + "SELECT * FROM lake.t", "the columns of", "are unknown")
    fails(broken("b11", "CREATE TABLE ducklake_inlined_delete_1 (file_id BIGINT, row_id BIGINT, begin_snapshot BIGINT)",
                 "INSERT INTO ducklake_inlined_delete_1 VALUES (0, 100, 1)") + "SELECT * FROM lake.t", "row 100 is deleted, and it has 100")
    fails(broken("b12", "DELETE FROM ducklake_snapshot"), "has no snapshot")
    attach = broken("b13")
    file, = glob.glob("b13/main/t/*-delete.parquet")
    pq.write_table(pa.table({"file_path": ["x"], "pos": pa.array([None], pa.int64())}), file)
    fails(attach + "SELECT * FROM lake.t", 'a value of "pos" is NULL')
    pq.write_table(pa.table({"file_path": ["x"], "pos": ["1"]}), file)
    fails(attach + "SELECT * FROM lake.t", 'it has no integers "pos"')
    attach = broken("b14")
    file, = (f for f in glob.glob("b14/main/t/*.parquet") if "delete" not in f)
    pq.write_table(pa.table({"a": list(range(100))}), file)
    fails(attach + "SELECT * FROM lake.t", "its fields have no numbers")
    with open("text.sqlite", "w") as text:
        text.write("this is a text, and no database of SQLite, with more than a hundred bytes in it" * 3)
    fails("ATTACH 'ducklake:sqlite:text.sqlite' AS lake", "is no SQLite database", "not from files of DuckDB")
    fails("ATTACH 'ducklake:sqlite:nothing.sqlite' AS lake", "nothing.sqlite")
    fails("ATTACH 'x' AS y (DATA_PATH 'z')", "an option of a DuckLake catalog")
    fails("ATTACH 'ducklake:x' AS y (SNAPSHOT_VERSION 'z')", "syntax error", "SNAPSHOT_VERSION 3")
    fails("ATTACH 'ducklake:x' AS y (SNAPSHOT_VERSION 1, SNAPSHOT_TIME '2024-01-01')", "not both")


def main():
    passed = failed = 0
    try:
        for name, test in list(globals().items()):
            if not name.startswith("test_") or (len(sys.argv) > 2 and name not in sys.argv[2:]):
                continue
            try:
                test()
                passed += 1
            except Exception as error:  # noqa: BLE001
                failed += 1
                print(f"FAILED: {name}: {type(error).__name__}: {error}")
    finally:
        os.chdir(ROOT)
        shutil.rmtree(WORK, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
