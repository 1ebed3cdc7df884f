# The benchmarks: their programs, and the targets that run them. Included by the Makefile before its rules.

# A benchmark's own kernels: bench/<its name>_*.cu. Those that have some, or are kernels themselves, are for the toolkit alone.
BenchKernels = $(wildcard $(basename $1)_*.cu)
BENCH_SOURCES := $(filter-out $(EXCLUDE),$(if $(NVCC),$(wildcard bench/*.cc bench/*_bench.cu), \
  $(foreach s,$(wildcard bench/*.cc),$(if $(call BenchKernels,$s),,$s))))
# Of bench/queries.cc queries_bench, of bench/gpu_scan_bench.cc gpu_scan_bench.
BenchName = $(patsubst %_bench_bench,%_bench,$(addsuffix _bench,$(basename $(notdir $1))))
BENCHES := $(call BenchName,$(BENCH_SOURCES))
# Tests run these.
TESTED_BENCHES := $(filter $(shell grep -ohE '"[a-z_]+_bench"' tests/*/*_test.py | tr -d '"'),$(BENCHES))

# What demo-ssb, bench-tpch and their like run.
QueryPrograms = $(if $(NOBUILD),,$(B)/tessera $(if $(filter tpcds,$1),,$(B)/$1_gen) $(B)/queries_bench)

.PHONY: bench-groupby bench-groupby-run bench-tpcds bench-tpcds-run bench-clickbench bench-clickbench-run bench-cliffs bench-cliffs-run bench-python bench-python-run bench-dml bench-dml-run bench-server bench-server-run bench-files bench-files-run bench-insert bench-insert-run bench-ssb bench-tpch bench-sql bench-ssb-run bench-tpch-run bench-sql-run bench-join bench-join-run \
        bench-ranks bench-ranks-run bench-exchange bench-exchange-run bench-scaling bench-scaling-run \
        bench-compression bench-compression-run bench-stream bench-stream-run bench-model bench-model-run

bench-ssb:  ##measure The Star Schema Benchmark: DEVICE=host|auto|gpu|each SCALE=1 CSV=file; on the host beside DuckDB
	@$(if $(NOBUILD),,tests/setup build $(if $(filter host,$(DEVICE)),bench))
	@$(MAKE) --no-print-directory bench-ssb-run
bench-tpch:  ##measure TPC-H beside DuckDB: DEVICE=host|auto|gpu|each SCALE=1 RUNS=7 THREADS=n CSV=file; see bench/queries.sh
	@$(if $(NOBUILD),,tests/setup build bench)
	@$(MAKE) --no-print-directory bench-tpch-run
bench-sql:  ##measure Windows, sets, medians, texts, beside DuckDB: as bench-tpch; SCALE=1 has 10 million rows
	@$(if $(NOBUILD),,tests/setup build bench)
	@$(MAKE) --no-print-directory bench-sql-run
bench-tpcds:  ##measure TPC-DS's 99 queries beside DuckDB: as bench-tpch; data and texts are of DuckDB's extension tpcds
	@$(if $(NOBUILD),,tests/setup build bench tpcds)
	@$(MAKE) --no-print-directory bench-tpcds-run
bench-clickbench:  ##measure 43 queries over a table of ClickBench's shape, beside DuckDB: ROWS=1000000, else as bench-tpch
	@$(if $(NOBUILD),,tests/setup build bench)
	@$(MAKE) --no-print-directory bench-clickbench-run SCALE=$(or $(ROWS),1000000)
bench-tpcds-run: $(call QueryPrograms,tpcds)
bench-clickbench-run: $(call QueryPrograms,clickbench)
bench-ssb-run: $(call QueryPrograms,ssb)
bench-tpch-run: $(call QueryPrograms,tpch)
bench-sql-run: $(call QueryPrograms,sql)
bench-ssb-run bench-tpch-run bench-tpcds-run bench-clickbench-run bench-sql-run: bench-%-run:
	@bench/queries.sh $* bench $(B) $(SCALE) $(DEVICE) $(CSV)

bench-join:  ##measure Joins: PARTS="theta wisconsin fk skew" DEVICE=host|gpu CSV=file; see bench/join.py
	@$(if $(NOBUILD),,tests/setup build bench)
	@$(MAKE) --no-print-directory bench-join-run
bench-join-run: $(if $(NOBUILD),,$(B)/tessera $(B)/join_gen $(B)/wisconsin_gen)
	@PARTS='$(PARTS)' DEVICE='$(DEVICE)' CSV='$(CSV)' bench/join.py $(B)
bench-ranks:  ##measure Ranks on this machine: PARTS="ssb master gather" RANKS="1 2" SCALE=1 CSV=file; see bench/ranks.py
	@$(if $(NOBUILD),,tests/setup build ranks)
	@$(MAKE) --no-print-directory bench-ranks-run
bench-ranks-run: $(if $(NOBUILD),,$(B)/tessera $(B)/ssb_gen $(B)/join_gen $(MPI_OBJECT))
	@PARTS='$(PARTS)' DEVICE='$(DEVICE)' SCALE='$(SCALE)' CSV='$(CSV)' bench/ranks.py $(B)

bench-exchange:  ##measure Rows from rank to rank, beside the links: PARTS="links all pairs" DEVICE=host|gpu RANKS=2 CSV=file; see bench/exchange.py
	@$(if $(NOBUILD),,tests/setup build ranks)
	@$(MAKE) --no-print-directory bench-exchange-run
bench-exchange-run: $(if $(NOBUILD),,$(B)/tessera $(B)/join_gen $(B)/alltoall_bench $(if $(NVCC),$(B)/gpu_links_bench) $(MPI_OBJECT))
	@PARTS='$(PARTS)' DEVICE='$(DEVICE)' CSV='$(CSV)' bench/exchange.py $(B)

bench-scaling:  ##measure A scaling experiment: SUITES="select join ssb tpch" RANKS="1 2" MODE=strong|weak; see bench/scaling/README.md
	@$(if $(NOBUILD),,tests/setup build ranks)
	@$(MAKE) --no-print-directory bench-scaling-run
bench-scaling-run: $(if $(NOBUILD),,$(B)/tessera $(B)/ssb_gen $(B)/tpch_gen $(B)/join_gen $(MPI_OBJECT))
	@SUITES='$(SUITES)' RANKS='$(RANKS)' MODE='$(MODE)' DEVICE='$(DEVICE)' SCALE='$(SCALE)' bench/scaling/scaling.py $(B)

bench-compression:  ##measure Schemes, the planner, zstd and gzip on TPC-H's columns: PARTS="columns costs scan" SCALE=0.1; see bench/compression.py
	@$(if $(NOBUILD),,tests/setup build)
	@$(MAKE) --no-print-directory bench-compression-run
bench-compression-run: $(if $(NOBUILD),,$(B)/tessera $(B)/tpch_gen $(B)/compression_bench)
	@PARTS='$(PARTS)' DEVICE='$(DEVICE)' CSV='$(CSV)' SCALE='$(if $(filter command line environment,$(origin SCALE)),$(SCALE),0.1)' bench/compression.py $(B)

bench-stream:  ##measure Columns on their way to a GPU: PARTS="pieces widths", also disk and ssb, CSV=file; see bench/stream.py
	@$(if $(NOBUILD),,tests/setup build)
	@$(MAKE) --no-print-directory bench-stream-run
bench-stream-run: $(if $(NOBUILD),,$(B)/tessera $(B)/transfer_bench $(B)/disk_bench $(if $(filter ssb,$(PARTS)),$(B)/ssb_gen))
	@PARTS='$(PARTS)' CSV='$(CSV)' SCALE='$(if $(filter file,$(origin SCALE)),,$(SCALE))' bench/stream.py $(B)
bench-model:  ##measure SSB on a GPU by SET transfer and invisible_join, and a cost model: SCALE=1 CSV=file; see bench/model.py
	@$(if $(NOBUILD),,tests/setup build)
	@$(MAKE) --no-print-directory bench-model-run
bench-model-run: $(if $(NOBUILD),,$(B)/tessera $(B)/ssb_gen $(B)/transfer_bench)
	@PARTS='$(PARTS)' CSV='$(CSV)' SCALE='$(SCALE)' bench/model.py $(B)

bench-python:  ##measure Results in Python beside DuckDB's package: ROWS=10000000 RUNS=5; see bench/python.py
	@$(if $(NOBUILD),,tests/setup build test)
	@$(MAKE) --no-print-directory bench-python-run
bench-python-run: $(if $(NOBUILD),,$(B)/libtessera.so)
	@ROWS='$(ROWS)' $(firstword $(wildcard build/venv/bin/python) python3) bench/python.py $(B)
bench-insert:  ##measure INSERTs of one row, in memory and on disk, beside SQLite: PARTS="memory disk" ROWS=3000 CSV=file; see bench/insert.py
	@$(if $(NOBUILD),,tests/setup build bench)
	@$(MAKE) --no-print-directory bench-insert-run
bench-insert-run: $(if $(NOBUILD),,$(B)/tessera)
	@PARTS='$(PARTS)' CSV='$(CSV)' bench/insert.py $(B)

bench-cliffs:  ##measure Queries that grow badly where a plan looks at too much, beside DuckDB: LIMIT=1.0 RUNS=3 CSV=file; see bench/cliffs.py
	@$(if $(NOBUILD),,tests/setup build bench)
	@$(MAKE) --no-print-directory bench-cliffs-run
bench-cliffs-run: $(if $(NOBUILD),,$(B)/tessera)
	@CSV='$(CSV)' $(firstword $(wildcard build/venv/bin/python) python3) bench/cliffs.py $(B)

bench-groupby:  ##measure Group-bys and joins of db-benchmark's shape beside DuckDB and Polars: ROWS=10000000 PARTS="groupby join"; see bench/groupby.py
	@$(if $(NOBUILD),,tests/setup build bench test arrow)
	@$(MAKE) --no-print-directory bench-groupby-run
bench-groupby-run: $(if $(NOBUILD),,$(B)/tessera $(ARROW_OBJECT))
	@ROWS='$(ROWS)' PARTS='$(PARTS)' CSV='$(CSV)' $(firstword $(wildcard build/venv/bin/python) python3) bench/groupby.py $(B)

bench-files:  ##measure CSV and Parquet files without DDL, beside DuckDB: PARTS="csv parquet" MEGABYTES=200 SCALE=1 CSV=file; see bench/files.py
	@$(if $(NOBUILD),,tests/setup build bench arrow)
	@$(MAKE) --no-print-directory bench-files-run
bench-files-run: $(if $(NOBUILD),,$(B)/tessera $(if $(filter csv,$(PARTS)),,$(B)/tpch_gen $(B)/ssb_gen $(ARROW_OBJECT)))
	@CSV='$(CSV)' PARTS='$(PARTS)' SCALE='$(if $(filter file,$(origin SCALE)),,$(SCALE))' $(firstword $(wildcard build/venv/bin/python) python3) bench/files.py $(B)

bench-server:  ##measure A server: round trips, TPC-DS by SESSIONS=16 beside DuckDB's cursors, TPC-H's throughput test, COPY: DEVICE=host|gpu SCALE=3; see bench/server.py
	@$(if $(NOBUILD),,tests/setup build bench test tpcds)
	@$(MAKE) --no-print-directory bench-server-run
bench-server-run: $(if $(NOBUILD),,$(B)/tessera $(B)/tpch_gen)
	@PARTS='$(PARTS)' DEVICE='$(DEVICE)' CSV='$(CSV)' SCALE='$(if $(filter file,$(origin SCALE)),,$(SCALE))' SESSIONS='$(SESSIONS)' $(firstword $(wildcard build/venv/bin/python) python3) bench/server.py $(B)
bench-dml:  ##measure Changes of lineitem, and commits, beside DuckDB and SQLite: PARTS="lineitem commits writers" SCALE=1 CSV=file; see bench/dml.py
	@$(if $(NOBUILD),,tests/setup build bench)
	@$(MAKE) --no-print-directory bench-dml-run
bench-dml-run: $(if $(NOBUILD),,$(B)/tessera $(B)/tpch_gen $(SHARED_LIBRARY))
	@PARTS='$(PARTS)' CSV='$(CSV)' SCALE='$(if $(filter file,$(origin SCALE)),,$(SCALE))' $(firstword $(wildcard build/venv/bin/python) python3) bench/dml.py $(B)

define BENCH_RULE
$(B)/$(call BenchName,$1): $(patsubst %,$(B)/obj/%.o,$1 $(call BenchKernels,$1)) $(B)/libtessera.a $(B)/link_flags
	@$$(call Link,$$(filter %.o %.a,$$^))
endef
$(foreach s,$(BENCH_SOURCES),$(eval $(call BENCH_RULE,$s)))
