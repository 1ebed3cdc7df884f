#!/bin/bash
# The queries of a benchmark with the programs of BUILD_DIR: makes data and database if they are missing, then runs.
#
#   bench/queries.sh NAME demo    BUILD_DIR SCALE                            the queries, once each, with their first rows
#   bench/queries.sh NAME bench   BUILD_DIR SCALE host|auto|gpu|each [CSV]   the table of measurements
#   bench/queries.sh NAME prepare BUILD_DIR SCALE                          data and database; prints the latter's directory
#
# NAME is ssb, tpch, tpcds, clickbench or sql; the SCALE of clickbench is its number of rows.
# auto is what a user has, gpu refuses what a GPU cannot run. each: host, gpu and auto alternately, and whether auto is as
# fast as the better of the two, without DuckDB. Beside DuckDB if a python3 has it (on PYTHONPATH, or in
# BUILD_DIR/venv); the Star Schema Benchmark only on the host.
#
# Environment variables:
#
#     RUNS=7           hot runs a query
#     THREADS=         of the host; by default all processors
#     PARTS=           "q1 q19": only these queries
#     LIMIT=60         seconds after which a query is left
#     MEMORY=          the host's memory_limit, as SET takes it: '2GB'
#     TIGHT=10         no such table: each query again with a tenth of the memory that it took, and the rows compared
#     GPU_MEMORY=      MiB
#     TEXT=            MiB of text of which TPC-H's comments are pieces: see tpch_gen --help
#     DUCKDB=no        without DuckDB
#     COMPRESSION=     none, speed, balanced, ratio: a database of its own, stored with this setting
#     DISTRIBUTED=     yes: TPC-H's orders and lineitem are distributed by the order's key, in a database of its own
#
# Data go to BUILD_DIR/<benchmark>/<scale>/ (text, and DuckDB's file) and BUILD_DIR/<benchmark>/<scale>.tessera. A run that
# was stopped half-way leaves files whose names end in .part; the next run replaces them.
set -eu
cd "$(dirname "$0")/.."
benchmark=$1
mode=$2
build=$3
scale=$4
device=${5:-host}
csv=${6:-}
threads=${THREADS:-$(nproc)}

generator=("$build/${benchmark}_gen")
null=
case $benchmark in
  ssb) tables=(customer supplier part date lineorder) ;;
  tpch)
    tables=(region nation supplier customer part partsupp orders lineitem)
    [[ -z ${TEXT:-} ]] || generator+=(--text "$TEXT")
    ;;
  tpcds)  # tables and texts are DuckDB's, and lie with the data
    packages=build/tpcds_packages
    generator=(python3 bench/tpcds.py "$packages")
    [[ ! -x build/venv/bin/python ]] || generator[0]=build/venv/bin/python
    tables=(call_center catalog_page catalog_returns catalog_sales customer customer_address customer_demographics date_dim
      household_demographics income_band inventory item promotion reason ship_mode store store_returns store_sales time_dim
      warehouse web_page web_returns web_sales web_site)
    ;;
  clickbench)
    tables=(hits)
    null=", NULL '\\N'"  # an empty field is an empty text
    ;;
  sql) tables=(events) ;;
  *)
    echo "bench/queries.sh: ssb, tpch, tpcds, clickbench or sql, not '$benchmark'" >&2
    exit 2
    ;;
esac
size=--scale
[[ $benchmark != clickbench ]] || size=--rows
folder() {  # of the schema and the texts, with the data of `data`
  if [[ $benchmark == tpcds ]]; then echo "$data"; else echo "data_gen/$benchmark"; fi
}

# What is in a database depends on the generator and the schema: a change of either makes it stale.
if [[ $benchmark == tpcds ]]; then
  sources=(bench/tpcds.py "$packages"/duckdb_extension_tpcds-*/METADATA)
else
  sources=("data_gen/${benchmark}_gen.cc" data_gen/tpch_text.cc data_gen/*.h "data_gen/$benchmark/schema.sql")
fi
recipe="${TEXT:-} $(cat "${sources[@]}" tablet/chunk/tablet_format.h | cksum)"

distributed() {  # a schema whose tables of orders are distributed
  awk '/^CREATE TABLE orders/ {key = "o_orderkey"} /^CREATE TABLE lineitem/ {key = "l_orderkey"}
       /^\);/ && key != "" {print ") WITH (distribute_by = \047" key "\047);"; key = ""; next} {print}'
}

prepare() {  # prepare SCALE: sets `data` and `database`
  data=$build/$benchmark/$1
  database=$build/$benchmark/$1${COMPRESSION:+-$COMPRESSION}${DISTRIBUTED:+-distributed}.tessera
  if [[ ! -e $data/recipe || $(<"$data/recipe") != "$recipe" ]]; then
    echo "Generating scale $1 into $data" >&2
    rm -rf "$data" "$data.part" "$data".tessera "$data"-*.tessera
    "${generator[@]}" "$size" "$1" --out "$data.part" >&2
    echo "$recipe" >"$data.part/recipe"
    mv "$data.part" "$data"
  fi
  # The directory gets its name when the last table is in it, so one that is there is whole.
  if ! "$build/tessera" --device host -readonly -c "SELECT count(*) FROM ${tables[-1]}" "$database" >/dev/null 2>&1; then
    echo "Loading it into $database" >&2
    rm -rf "$database" "$database.part"
    local schema
    schema=$(folder)/schema.sql
    {
      [[ -z ${COMPRESSION:-} ]] || echo "SET compression = $COMPRESSION;"
      if [[ -z ${DISTRIBUTED:-} ]]; then cat "$schema"; else distributed <"$schema"; fi
      local table
      for table in "${tables[@]}"; do
        echo "COPY $table FROM '$data/$table.tbl' (FORMAT csv, DELIMITER '|'$null);"
      done
    } >"$data/load.sql"
    "$build/tessera" -bail --device host --threads "$threads" -f "$data/load.sql" "$database.part"
    mv "$database.part" "$database"
  fi
}

case $mode in
  demo)
    prepare "$scale"
    "$build/queries_bench" --demo --benchmark "$benchmark" --texts "$(folder)" --scale "$scale" --database "$database" --threads "$threads"
    ;;
  prepare)
    prepare "$scale" >&2
    echo "$database"
    ;;
  bench)
    arguments=(--benchmark "$benchmark" --scale "$scale" --threads "$threads" --runs "${RUNS:-7}"
      --limit "${LIMIT:-60}" --queries "${PARTS:-}")
    if [[ $device == each ]]; then
      arguments+=(--each-device)
      DUCKDB=no
    else
      arguments+=(--device "$device")
    fi
    [[ -z $csv ]] || arguments+=(--csv "$csv")
    [[ -z ${MEMORY:-} ]] || arguments+=(--set "memory_limit=$MEMORY")
    [[ -z ${TIGHT:-} ]] || arguments+=(--tight "$TIGHT")
    [[ -z ${GPU_MEMORY:-} ]] || arguments+=(--gpu-memory "$GPU_MEMORY")
    if [[ ${DUCKDB:-} != no && ($device == host || $benchmark != ssb) ]]; then
      for python in python3 "$build/venv/bin/python"; do
        if command -v "$python" >/dev/null && "$python" -c 'import duckdb' 2>/dev/null; then
          arguments+=(--duckdb "$python")
          break
        fi
      done
    fi
    if [[ $device == host && $benchmark == ssb ]]; then
      prepare 0.01
      arguments+=(--small-database "$database" --shell "$build/tessera")
    fi
    prepare "$scale"
    "$build/queries_bench" "${arguments[@]}" --texts "$(folder)" --database "$database" --data "$data"
    ;;
  *)
    echo "bench/queries.sh: demo, bench or prepare, not '$mode'" >&2
    exit 2
    ;;
esac
