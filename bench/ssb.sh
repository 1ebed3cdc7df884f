#!/bin/bash
# The Star Schema Benchmark with the programs of BUILD_DIR: makes data and database if they are missing, then runs.
#
#   bench/ssb.sh demo  BUILD_DIR SCALE                    the 13 queries, once each, with their rows (make demo)
#   bench/ssb.sh bench BUILD_DIR SCALE host|gpu [CSV]     the table of measurements (make bench-ssb)
#   bench/ssb.sh prepare BUILD_DIR SCALE                  data and database only; prints the database's directory
#
# Data go to BUILD_DIR/ssb/<scale>/ (text, and DuckDB's file) and BUILD_DIR/ssb/<scale>.tessera. A run that was stopped
# half-way leaves files whose names end in .part; the next run replaces them. RUNS=n: hot runs a query (default 7).
# THREADS=n.
set -eu
cd "$(dirname "$0")/.."
mode=$1
build=$2
scale=$3
device=${4:-host}
csv=${5:-}
threads=${THREADS:-$(nproc)}

# What is in a database depends on the generator and the schema: a change of either makes it stale.
recipe="$(cat data_gen/ssb_gen.cc data_gen/*.h data_gen/ssb/schema.sql tablet/tablet_format.h | cksum)"

prepare() {  # prepare SCALE: sets `data` and `database`
  data=$build/ssb/$1
  database=$build/ssb/$1.tessera
  if [[ ! -e $data/recipe || $(<"$data/recipe") != "$recipe" ]]; then
    echo "Generating SSB at scale $1 into $data" >&2
    rm -rf "$data" "$data.part" "$database"
    "$build/ssb_gen" --scale "$1" --out "$data.part" >&2
    echo "$recipe" >"$data.part/recipe"
    mv "$data.part" "$data"
  fi
  # The directory gets its name when the last table is in it, so one that is there is whole.
  if ! "$build/tessera" --device host -readonly -c 'SELECT count(*) FROM lineorder' "$database" >/dev/null 2>&1; then
    echo "Loading it into $database" >&2
    rm -rf "$database" "$database.part"
    {
      cat data_gen/ssb/schema.sql
      local table
      for table in customer supplier part date lineorder; do
        echo "COPY $table FROM '$data/$table.tbl' (FORMAT csv, DELIMITER '|');"
      done
    } >"$data/load.sql"
    "$build/tessera" -bail --device host --threads "$threads" -f "$data/load.sql" "$database.part"
    mv "$database.part" "$database"
  fi
}

case $mode in
  demo)
    prepare "$scale"
    "$build/ssb_bench" --demo --database "$database" --threads "$threads"
    ;;
  prepare)
    prepare "$scale" >&2
    echo "$database"
    ;;
  bench)
    arguments=(--threads "$threads" --runs "${RUNS:-7}" --device "$device")
    [[ -z $csv ]] || arguments+=(--csv "$csv")
    if [[ $device == host ]]; then
      prepare 0.01
      arguments+=(--small-database "$database" --shell "$build/tessera")
      for python in python3 "$build/venv/bin/python"; do
        if command -v "$python" >/dev/null && "$python" -c 'import duckdb' 2>/dev/null; then
          arguments+=(--duckdb "$python")
          break
        fi
      done
    fi
    prepare "$scale"
    "$build/ssb_bench" "${arguments[@]}" --database "$database" --data "$data"
    ;;
  *)
    echo "bench/ssb.sh: demo, bench or prepare, not '$mode'" >&2
    exit 2
    ;;
esac
