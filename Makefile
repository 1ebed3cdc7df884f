# Tessera's build: `make help` lists the targets, the banner says what was found on this machine.
#
# A source file with a main() becomes the program build/<name of the file>; tests/*/*_test.cc become GoogleTest
# programs, bench/*.cc and bench/*_bench.cu become build/<name>_bench, tests/torture/*.cc with a main() build/torture_<name>
# and tests/fuzz/*.cc build/fuzz/<name>; everything else goes into one static library. New files are picked up as they
# appear: hardly a source file is named here.
#
# Variables: B=dir (build folder), CUDA_ARCHS="90 100", NOCUDA=1 (as if there were no toolkit), NOBUILD=1 (run what is
# in build/ as it is: for a machine to which only the binaries were carried), PREFIX=/usr/local, SCALE=1, DEVICE=host|auto|gpu|each,
# CSV=file, PARTS="a b", RUNS=7, THREADS=n, SECONDS=300, SEED=1, EXCLUDE="a.cc b.cc".
SHELL := /bin/bash
COMMA := ,
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

B ?= build
CXX := g++
SCALE ?= 1
PREFIX ?= /usr/local
DEVICE ?= host
SECONDS ?= 300
SEED ?= 1

# As many jobs as cores unless the caller said how many.
ifeq ($(MAKELEVEL),0)
ifeq ($(shell tr '\0' '\n' </proc/$$PPID/cmdline 2>/dev/null | grep -cE '^(-[a-zA-Z]*j|--jobs)'),0)
MAKEFLAGS += -j$(shell nproc)
endif
endif

# ---- What there is --------------------------------------------------------------------------------------------------

# One run of the preprocessor answers for the compiler and every header. (\043 is a number sign.)
HEADERS := nlohmann/json.hpp pg_query.h re2/re2.h utf8proc.h zstd.h sqlite3.h zlib.h fmt/core.h xxhash.h histedit.h asio.hpp openssl/ssl.h postgresql/libpq-fe.h gtest/gtest.h boost/context/fiber.hpp
FOUND := $(if $(NOBUILD),,$(shell { printf '\043if __GNUC__ >= 12 || __clang_major__ >= 14\ngcc\n\043endif\n'; \
  printf '\043if __has_include(<fmt/core.h>)\n\043include <fmt/core.h>\n\043if FMT_VERSION / 10000 == 9\nfmt9\n\043endif\n\043endif\n'; \
  printf '\043if __has_include(<%s>)\n%s\n\043endif\n' $(foreach h,$(HEADERS),$h $h); } | \
  $(CXX) -std=c++20 -x c++ -E -P - 2>/dev/null | grep -E '^[a-z0-9_/.-]+$$'))
Has = $(filter $1,$(FOUND))
HasLibrary = $(filter /%,$(shell $(CXX) -print-file-name=lib$1 2>/dev/null))

NVCC_FOUND := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_HOME := $(if $(NVCC_FOUND),$(abspath $(dir $(NVCC_FOUND))..))
NVCC := $(if $(NOCUDA),,$(NVCC_FOUND))
ifneq ($(NVCC),)
CUDA_VERSION := $(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
endif
GPUS := $(shell command -v nvidia-smi >/dev/null 2>&1 && \
  nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null | tr ' ' '_' | grep -E ',_[0-9.]+$$')
GPU_ARCHS := $(sort $(foreach g,$(GPUS),$(subst .,,$(lastword $(subst _, ,$g)))))
CUDA_ARCHS ?= $(or $(GPU_ARCHS),80 90)
# Open MPI's programs may be there without its headers (openmpi-bin without libopenmpi-dev): then there are no ranks either.
MPICXX_FOUND := $(shell command -v mpicxx 2>/dev/null)
MPICXX := $(if $(MPICXX_FOUND),$(shell printf '\043if __has_include(<mpi.h>)\n$(MPICXX_FOUND)\n\043endif\n' | \
  $(MPICXX_FOUND) -std=c++20 -x c++ -E -P - 2>/dev/null))

# The server (tessera --serve) needs both; without them the rest is built all the same.
MISSING_SERVER := $(strip $(if $(call Has,asio.hpp),,libasio-dev) \
  $(if $(and $(call Has,openssl/ssl.h),$(call HasLibrary,ssl.a)),,libssl-dev))

# The shell's sessions of servers (tessera --host): libpq is loaded when it runs, its header is needed here; and the server's
# names of types.
MISSING_CLIENT := $(strip $(if $(call Has,postgresql/libpq-fe.h),,libpq-dev) $(MISSING_SERVER))

# The packages that a build, and the tests, lack.
MISSING := $(strip $(if $(call Has,gcc),,g++) \
  $(if $(and $(call Has,pg_query.h),$(call HasLibrary,pg_query.a)),,libpg-query-dev) \
  $(if $(and $(call Has,re2/re2.h),$(call HasLibrary,re2.a)),,libre2-dev) \
  $(if $(and $(call Has,utf8proc.h),$(call HasLibrary,utf8proc.a)),,libutf8proc-dev) \
  $(if $(and $(call Has,zstd.h),$(call HasLibrary,zstd.a)),,libzstd-dev) \
  $(if $(and $(call Has,zlib.h),$(call HasLibrary,z.so)),,zlib1g-dev) \
  $(if $(and $(call Has,sqlite3.h),$(call HasLibrary,sqlite3.so)),,libsqlite3-dev) \
  $(if $(call Has,nlohmann/json.hpp),,nlohmann-json3-dev) $(if $(call Has,fmt/core.h),,libfmt-dev) $(if $(call Has,xxhash.h),,libxxhash-dev) \
  $(if $(and $(call Has,histedit.h),$(call HasLibrary,edit.so)),,libedit-dev))
MISSING_TEST := $(if $(and $(call Has,gtest/gtest.h),$(call HasLibrary,gtest.a)),,libgtest-dev)
MISSING_EMULATOR := $(if $(and $(call Has,boost/context/fiber.hpp),$(call HasLibrary,boost_context.a)),,libboost-context-dev)

# ---- Flags ----------------------------------------------------------------------------------------------------------

# -Wno-restrict: g++ 12 sees overlaps in `"literal" + std::string` that are not there (its bug 105329). g++ 13 takes a
# reference into an argument for one into a temporary (its bug 107532).
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Werror $(if $(findstring clang,$(CXX)),-w,-Wno-restrict -Wno-dangling-reference)
# What of fmt is not templates is compiled once, in base/fmt_library.cc; it knows fmt 9.
CPPFLAGS := -I. $(if $(call Has,fmt9),,-DFMT_HEADER_ONLY)
# x86-64-v3 (AVX2) is every x86 server since 2015; no contraction, so that host and GPU compute the same bits.
CXXFLAGS := -std=c++20 -O3 -march=x86-64-v3 -ffp-contract=off $(WARNINGS) -pthread
# The library's objects fit into shared objects, too, and cost no more for that. Some of them are cold (COLD): -O1 compiles in
# two thirds of the time.
LIBRARY_FLAGS = $(filter-out -O%,$(CXXFLAGS)) -O$(LEVEL) -fPIC -fno-semantic-interposition -fvisibility=hidden
LEVEL := 3
# What tests do is not timed. A unit test itself does little: its code is compiled as it stands (-O0), what tests share with -O1.
TEST_FLAGS = $(filter-out -O%,$(CXXFLAGS)) -O$(LEVEL)
DEVICE_CODE := $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$a,code=sm_$a) \
  -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
NVCCFLAGS := -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr -lineinfo -I. -Werror all-warnings \
  -Xcompiler -march=x86-64-v3,-ffp-contract=off,-Wall,-Wextra,-pthread,-fPIC \
  $(DEVICE_CODE)
LDFLAGS := -pthread
# There are a hundred programs of tests, and gold links one in half the time. It comes with the binutils of Debian 12 and Ubuntu 24.04.
FAST_LINKER := $(if $(SANITIZE),,$(if $(shell command -v ld.gold),-fuse-ld=gold))
ifneq ($(SANITIZE),)
# g++ 12 with a sanitizer takes members of std::function in <regex> for uninitialized.
LEVEL := 1
CXXFLAGS := $(subst -O3,-O1,$(CXXFLAGS)) -g -fno-omit-frame-pointer -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -Wno-maybe-uninitialized
LDFLAGS += -fsanitize=$(SANITIZE)
# The thread sanitizer knows no fences. asio's stand where locks do, too.
$(B)/obj/server/%.cc.o: private CPPFLAGS += $(if $(findstring thread,$(SANITIZE)),-DASIO_DISABLE_FENCED_BLOCK)
endif
# libpg_query, RE2 and utf8proc are static, because few machines have them. The former's archive exports functions of an old xxhash; ours is inlined
# from the header (XXH_INLINE_ALL), so the two never meet.
SERVER_LIBS := $(if $(MISSING_SERVER),,-l:libssl.a -l:libcrypto.a)
LIBS := $(SERVER_LIBS) -lsqlite3 -l:libpg_query.a -l:libre2.a -l:libutf8proc.a -l:libzstd.a -lz -ledit -ldl
# The kernels' host side alone sees CUDA's headers, so that with and without a toolkit the rest is the same objects; and
# campaigns that call CUDA themselves.
GPU_TORTURE_SOURCES := tests/torture/cuda_calls.cc tests/torture/gpu_neighbour.cc
$(B)/obj/kernels/%.cc.o $(GPU_TORTURE_SOURCES:%=$(B)/obj/%.o): private CPPFLAGS += $(CUDA_HOME:%=-isystem %/include)
ifneq ($(NVCC),)
LIBS += -L$(CUDA_HOME)/lib64 -lcudadevrt -lcudart_static -lrt
endif
CCACHE := $(shell command -v ccache 2>/dev/null)
# (It takes what -MMD names for what a source includes, and the .sum beside a precompiled header for its contents.)
CCACHE_CXX := $(CCACHE:%=CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 %)

# ---- Files ----------------------------------------------------------------------------------------------------------

KERNEL_FOLDERS := kernels $(wildcard kernels/*/)
KERNEL_FOLDERS := $(KERNEL_FOLDERS:%/=%)
FOLDERS := $(shell find base tablet compiler vm session server shell capi data_gen mpi tools -type d) $(KERNEL_FOLDERS)
SOURCES := $(filter-out $(EXCLUDE),$(wildcard $(FOLDERS:%=%/*.cc)))
ifneq ($(NVCC),)
SOURCES := $(filter-out kernels/no_gpu.cc,$(SOURCES))
KERNELS := $(filter-out $(EXCLUDE),$(wildcard $(FOLDERS:%=%/*.cu)))
DEVICE_LINKED := kernels/device/dp_kernel.cu
else
SOURCES := $(filter-out $(filter-out kernels/no_gpu.cc,$(wildcard $(KERNEL_FOLDERS:%=%/*.cc))),$(SOURCES))
endif
# MPI is in a shared object of its own, loaded under a launcher only: see mpi/transport.h.
SOURCES := $(filter-out mpi/transport_mpi.cc,$(SOURCES))
ifneq ($(MPICXX),)
MPI_OBJECT := $(B)/tessera_mpi.so
endif
# The C interface: not with a sanitizer, whose runtime has to come first in a process.
SHARED_LIBRARY := $(if $(SANITIZE),,$(B)/libtessera.so)
# So is Apache Arrow, which is in the Python package pyarrow of the virtual environment: see columnar/README.md.
COLUMNAR_SOURCES := $(wildcard columnar/*.cc)
COLUMNAR_OBJECTS := $(COLUMNAR_SOURCES:%=$(B)/obj/%.o)
PYARROW := $(patsubst %/include/parquet/arrow/reader.h,%,$(firstword $(wildcard build/venv/lib/python3*/site-packages/pyarrow/include/parquet/arrow/reader.h)))
ARROW_LIBRARIES := $(notdir $(foreach l,arrow parquet,$(firstword $(sort $(wildcard $(PYARROW:%=%/lib$l.so.[0-9]*))))))
ifneq ($(PYARROW),)
ARROW_OBJECT := $(B)/tessera_arrow.so
endif
SOURCES := $(filter-out $(if $(MISSING_SERVER),$(filter-out server/no_server.cc,$(wildcard server/*.cc)),server/no_server.cc),$(SOURCES))
SOURCES := $(filter-out $(if $(MISSING_CLIENT),shell/server_session.cc,shell/no_server_session.cc),$(SOURCES))
# The folders of tests/ have the names of those whose code they test; the others have build rules of their own.
TEST_FOLDERS := $(filter-out $(addprefix tests/,cuda_emulator fuzz ledger sql torture),$(patsubst %/,%,$(wildcard tests/*/)))
TEST_SOURCES := $(filter-out $(EXCLUDE) $(if $(MISSING_SERVER),tests/server/server_messages_test.cc tests/server/server_connection_test.cc),$(wildcard $(TEST_FOLDERS:%=%/*.cc)))
TORTURE_SOURCES := $(filter-out $(EXCLUDE) $(if $(NVCC),,$(GPU_TORTURE_SOURCES)),$(wildcard tests/torture/*.cc))
FUZZ_SOURCES := $(wildcard tests/fuzz/*.cc)
include bench/bench.mk

# Where hardly anything runs: neither for each row nor for each query of the ledger (tests/ledger). A function of the
# standard library that cold and hot sources both have may be linked from either.
HOT := $(addprefix mpi/,mpi_exchange.cc packed_numbers.cc row_traffic.cc) $(addprefix capi/,arrow_array.cc arrow_values.cc) \
  $(addprefix server/,messages.cc row_sender.cc wire_values.cc) session/copy_text.cc \
  $(addprefix compiler/bind/bind_,expression.cc function.cc operator.cc type.cc)
COLD := $(filter-out $(HOT),$(wildcard compiler/bind/bind_*.cc compiler/bind/calls/*.cc session/*.cc server/*.cc shell/*.cc capi/*.cc mpi/*.cc tools/*.cc)) \
  $(foreach s,activity_tables alter_binder catalog_query catalog_tables co_location conflict_binder conversion_generator copy_binder \
    copy_columnar copy_partition database_command decorrelate dialect_pivot dialect_pragma duckdb_catalog error_format exchange_joins \
    explain_binder fold_aggregates foreign_key_binder generate_window grouping_sets hoist information_schema key_spans macro_binder \
    macro_definition materialized_view_binder merge_binder nearest_name partial_aggregate pg_catalog pg_server_catalog plan plan_text \
    plan_tree populated_check pragma_tables ranked_rows role_binder row_rules schema_binder schema_text script sequence_binder \
    split_grouping split_windows statement_option stored_columns table_binder type_binder unsupported_statement,$(filter compiler/%/$s.cc,$(SOURCES))) \
  $(addprefix tablet/,database.cc file_description.cc file_tables.cc hive_folders.cc lake_table.cc) \
  $(addprefix tablet/catalog/,catalog.cc catalog_file.cc catalog_roles.cc catalog_savepoints.cc database_copy.cc database_directory.cc references.cc) \
  tablet/load/columnar_options.cc tablet/load/file_spec.cc tablet/load/table_alteration.cc tablet/sqlite/lake_catalog.cc tablet/sqlite/sqlite_tables.cc \
  base/fmt_library.cc vm/program/listing.cc

WITH_MAIN := $(shell grep -l '^int main.' /dev/null $(SOURCES) $(TEST_SOURCES) $(TORTURE_SOURCES) $(BENCH_SOURCES))
TESTS := $(notdir $(patsubst %.cc,%,$(filter %_test.cc,$(TEST_SOURCES))))
TORTURES := $(patsubst tests/torture/%.cc,torture_%,$(filter $(TORTURE_SOURCES),$(WITH_MAIN)))
# file_layer.cc defines calls of the C library anew: for those that include its header, and not with the thread sanitizer,
# which does the same.
FILE_LAYER := tests/torture/file_layer.cc
FILE_TORTURES := $(patsubst tests/torture/%.cc,torture_%,$(shell grep -l file_layer.h /dev/null $(filter $(TORTURE_SOURCES),$(WITH_MAIN))))
TORTURES := $(filter-out $(if $(findstring thread,$(SANITIZE)),$(FILE_TORTURES)),$(TORTURES))
TORTURE_PARTS := $(filter-out $(WITH_MAIN) $(FILE_LAYER),$(TORTURE_SOURCES))
PROGRAM_SOURCES := $(filter-out $(BENCH_SOURCES) $(TORTURE_SOURCES) %_test.cc,$(WITH_MAIN))
PROGRAMS := $(notdir $(PROGRAM_SOURCES:.cc=))
UNIT_TESTS := $(filter %_test.cc,$(TEST_SOURCES))
OTHER_TESTS := $(filter-out $(UNIT_TESTS),$(TEST_SOURCES) $(TORTURE_SOURCES))
# What several tests share: the files of tests/ that are neither tests nor programs.
TEST_PARTS := $(filter-out %_test.cc $(WITH_MAIN),$(TEST_SOURCES))
# Of those, what the programs link with: it must not need GoogleTest.
PROGRAM_PARTS := $(filter tests/sqllogictest/%,$(TEST_PARTS))

# (The C interface is an object of its own, which no program needs.)
C_OBJECTS := $(patsubst %,$(B)/obj/%.o,$(filter capi/%,$(SOURCES)))
LIBRARY_OBJECTS := $(patsubst %,$(B)/obj/%.o,$(filter-out $(WITH_MAIN) capi/%,$(SOURCES)) $(KERNELS)) \
  $(if $(DEVICE_LINKED),$(B)/obj/device_link.o)
TEST_PART_OBJECTS := $(TEST_PARTS:%=$(B)/obj/%.o)
ALL_SOURCES := $(SOURCES) $(COLUMNAR_SOURCES) $(KERNELS) $(TEST_SOURCES) $(TORTURE_SOURCES) $(FUZZ_SOURCES) $(BENCH_SOURCES) $(foreach s,$(BENCH_SOURCES),$(call BenchKernels,$s))

include tests/cuda_emulator/emulator.mk
include tests/ledger/ledger.mk

# ---- Targets that people call ---------------------------------------------------------------------------------------

.PHONY: all arrow arrow-object programs tested-programs tests torture-programs emulated demo demo-tpch demo-tpcds test test-run test-slow test-gpu demo-ssb-run \
        demo-tpch-run demo-tpcds-run asan tsan torture torture-run fuzz fuzz-run fuzz-tablets soak format format-check opcodes \
        sql-reference ledger ledger-gpu help clean requirements install wheel FORCE

all: programs torture-programs $(LEDGER) $(if $(MISSING_TEST),,tests emulated)  ##build Everything that can be built here, into build/ (the default)
programs: tested-programs $(BENCHES:%=$(B)/%)  ##build The programs, benchmarks included
tested-programs: $(PROGRAMS:%=$(B)/%) $(TESTED_BENCHES:%=$(B)/%) $(MPI_OBJECT) $(ARROW_OBJECT) $(if $(SHARED_LIBRARY),$(SHARED_LIBRARY) $(B)/capi_example)
arrow:  ##build Install pyarrow into build/venv, and build what reads and writes Parquet and Arrow files with it
	@$(if $(NOBUILD),,tests/setup arrow)
	@$(MAKE) --no-print-directory arrow-object
arrow-object: $(B)/tessera_arrow.so
tests: $(TESTS:%=$(B)/%)  ##build The unit tests
torture-programs: $(TORTURES:%=$(B)/%)
emulated: $(EMULATED)  ##build What tests the kernels without a GPU: linked with tests/cuda_emulator instead of with CUDA

# Set-up comes before the make that looks for what is there. What is tried on a machine without a GPU needs no kernels; `make`
# compiles them, and then they stay.
WITHOUT_KERNELS := $(if $(NVCC),$(if $(GPUS)$(wildcard $(B)/obj/kernels/*/*.cu.o),,NOCUDA=1))
demo:  ##try Install what is missing, build, generate SSB (SCALE=1), load it and run its 13 queries
	@$(if $(NOBUILD),,tests/setup build)
	@$(MAKE) --no-print-directory demo-ssb-run $(WITHOUT_KERNELS)
demo-tpch:  ##try The same for TPC-H (SCALE=0.1) and its 22 queries
	@$(if $(NOBUILD),,tests/setup build)
	@$(MAKE) --no-print-directory demo-tpch-run $(WITHOUT_KERNELS) SCALE=$(if $(filter file,$(origin SCALE)),0.1,$(SCALE))
demo-tpcds:  ##try The same for TPC-DS (SCALE=0.1), whose data and 99 queries are of DuckDB's extension tpcds
	@$(if $(NOBUILD),,tests/setup build tpcds)
	@$(MAKE) --no-print-directory demo-tpcds-run $(WITHOUT_KERNELS) SCALE=$(if $(filter file,$(origin SCALE)),0.1,$(SCALE))
demo-ssb-run: $(call QueryPrograms,ssb)
demo-tpch-run: $(call QueryPrograms,tpch)
demo-tpcds-run: $(call QueryPrograms,tpcds)
demo-ssb-run demo-tpch-run demo-tpcds-run: demo-%-run:
	@bench/queries.sh $* demo $(B) $(SCALE)

test:  ##test Install what is missing, build, run every test on the host (kernels emulated), close with the totals
	@$(if $(NOBUILD),,tests/setup build test ranks tpcds ducklake)
	@$(MAKE) --no-print-directory test-run
# (A benchmark that no test runs is built by `make`.)
test-run: $(if $(NOBUILD),,tested-programs torture-programs $(LEDGER) $(if $(MISSING_TEST),,tests emulated))
	@tests/run host $(B)
test-slow: $(if $(NOBUILD),,all)  ##test What `make test` leaves out because it takes minutes
	@tests/run slow $(B)
test-gpu: $(if $(NOBUILD),,all)  ##test The tests on the GPU of this machine (NOBUILD=1: as carried here)
	@tests/run gpu $(B)
asan:  ##test The host tests with the address and undefined-behaviour sanitizers, in build/asan
	@$(MAKE) --no-print-directory B=$(B)/asan SANITIZE=address,undefined NOCUDA=1 test-run
tsan:  ##test The host tests with the thread sanitizer, in build/tsan
	@$(MAKE) --no-print-directory B=$(B)/tsan SANITIZE=thread NOCUDA=1 test-run
torture:  ##test The campaigns of tests/torture, SECONDS=300 each
	@$(if $(NOBUILD),,tests/setup build)
	@$(MAKE) --no-print-directory torture-run
torture-run: $(if $(NOBUILD),,torture-programs programs $(filter $(B)/emulated/torture_%,$(EMULATED)))
	@SECONDS_EACH=$(SECONDS) tests/run torture $(B)
soak: $(if $(NOBUILD),,programs)  ##test A server among 64 clients that behave badly, SECONDS=300; an hour is SECONDS=3600
	@python3 tests/server/server_soak.py $(B) $(SECONDS) 64 $(SEED)
fuzz-tablets:  ##test Packed tablet files of a stranger under the address and undefined-behaviour sanitizers, SECONDS=300
	@$(MAKE) --no-print-directory B=$(B)/asan SANITIZE=address,undefined NOCUDA=1 $(B)/asan/torture_packed_trees
	@$(B)/asan/torture_packed_trees --seconds $(SECONDS) --seed $(SEED)
fuzz:  ##test The fuzz targets of tests/fuzz under clang's libFuzzer, SECONDS=300 each, in build/fuzz
	@tests/setup build fuzz
	@$(MAKE) --no-print-directory B=$(B)/fuzz CXX=clang++ SANITIZE=address,undefined,fuzzer-no-link NOCUDA=1 fuzz-run
fuzz-run: $(FUZZ_SOURCES:tests/fuzz/%.cc=$(B)/%)
	@SECONDS_EACH=$(SECONDS) tests/run fuzz $(B)

# The programs look for tessera_mpi.so and tessera_arrow.so beside themselves.
INSTALLED_HEADERS = $(wildcard $(foreach f,$(filter base% tablet% vm% compiler% mpi% session% capi%,$(FOLDERS)),$f/*.h $f/*.def) kernels/kernels.h)
FORMATTED = $(wildcard $(foreach f,$(FOLDERS) columnar $(TEST_FOLDERS) tests/ledger tests/torture tests/fuzz tests/cuda_emulator tests/cuda_emulator/kernels/device bench,$f/*.cc $f/*.h $f/*.cu $f/*.cuh))
format:  ##maintain Format all C++ and CUDA sources with clang-format
	@clang-format -i --style=file $(FORMATTED)
format-check:  ##maintain Name the files that `make format` would change
	@clang-format --style=file --dry-run $(FORMATTED) 2>&1 | sed -n 's/:[0-9]*:[0-9]*: warning.*//p' | sort -u
ledger: $(LEDGER) $(B)/tessera $(B)/ssb_gen $(B)/tpch_gen  ##maintain Write the costs of this build into tests/ledger/, with which `make test` compares
	@tests/ledger/ledger.py $(B) record
ledger-gpu: $(LEDGER) $(B)/tessera $(B)/ssb_gen $(B)/tpch_gen  ##maintain The same of calls of CUDA, on the GPU of this machine
	@tests/ledger/ledger.py $(B) record gpu
opcodes: $(B)/opcodes_md  ##maintain Write vm/OPCODES.md anew from the opcode table
	@$< >$(B)/OPCODES.md && mv $(B)/OPCODES.md vm/OPCODES.md
sql-reference: $(B)/sql_md  ##maintain Write the tables of SQL.md anew from the .def tables
	@$< SQL.md >$(B)/SQL.md && mv $(B)/SQL.md SQL.md
compile_commands.json: FORCE  ##maintain How each source is compiled, for clangd and its like
	@$(MAKE) --no-print-directory -n -B COUNTING=1 all 2>/dev/null | sed -nE \
	  -e 's~ -include [^ ]*/precompiled/[^ ]*~~' \
	  -e 's~^(.*ccache )?([^ ]*(g\+\+|nvcc) .* -c ([^ ]+) -o ([^ ]+))$$~{"directory": "$(CURDIR)", "file": "\4", "output": "\5", "command": "\2"},~p' | \
	  sed -e '1s/^/[/' -e '$$s/,$$/]/' >$@
VERSION = $(shell sed -n 's/.*kVersion = "\(.*\)".*/\1/p' base/version.h)
define PKG_CONFIG
prefix=$(PREFIX)
Name: tessera
Description: The C interface of Tessera, an analytic SQL database
Version: $(VERSION)
Cflags: -I$${prefix}/include/tessera/capi
Libs: -L$${prefix}/lib -l:libtessera.so
endef
export PKG_CONFIG
install: $(B)/tessera $(B)/tessera_man $(B)/libtessera.a $(B)/libtessera.so $(MPI_OBJECT) $(ARROW_OBJECT)  ##build Program, manual page, libraries and headers into PREFIX=/usr/local
	@install -D -t $(DESTDIR)$(PREFIX)/bin $(B)/tessera $(MPI_OBJECT) $(ARROW_OBJECT)
	@$(B)/tessera_man | install -D -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/share/man/man1/tessera.1
	@install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib $(B)/libtessera.a
	@install -m 755 $(B)/libtessera.so $(DESTDIR)$(PREFIX)/lib/libtessera.so.0 && ln -sf libtessera.so.0 $(DESTDIR)$(PREFIX)/lib/libtessera.so
	@install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig && echo "$$PKG_CONFIG" >$(DESTDIR)$(PREFIX)/lib/pkgconfig/tessera.pc
	@sed 's|/usr/local/bin/|$(PREFIX)/bin/|' server/deploy/tessera.service | install -D -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/lib/systemd/system/tessera.service
	@for f in $(INSTALLED_HEADERS); do install -D -m 644 $$f $(DESTDIR)$(PREFIX)/include/tessera/$$f || exit; done
	@echo "Installed in $(DESTDIR)$(PREFIX). To build with the library: g++ -std=c++20 -I$(PREFIX)/include/tessera ... -L$(PREFIX)/lib -l:libtessera.a $(LDFLAGS) $(LIBS); with the C interface: cc ... \$$(pkg-config --cflags --libs tessera)"
wheel: $(B)/libtessera.so  ##build The Python package as a wheel, into build/wheels
	@TESSERA_LIBRARY=$(abspath $<) $(firstword $(wildcard build/venv/bin/python) python3) -m pip wheel --quiet --disable-pip-version-check \
	  --no-deps -w $(B)/wheels ./python && ls $(B)/wheels/*.whl
clean:  ##maintain Remove build/
	@rm -rf $(B)

GROUPS := build:Build try:Try test:Test measure:Measure maintain:Maintain
help:  ##build This list
	@$(foreach g,$(GROUPS),printf '\n%s\n' $(word 2,$(subst :, ,$g)); \
	  sed -nE 's/^([a-z_.-]+):.*##$(firstword $(subst :, ,$g)) (.*)/  \1\t\2/p' Makefile bench/bench.mk | \
	  while IFS=$$'\t' read -r t d; do printf '%-24s%s\n' "$$t" "$$d"; done; )
	@printf '\nVariables: B, CUDA_ARCHS, NOCUDA=1, NOBUILD=1, PREFIX, SCALE, DEVICE, CSV, PARTS, RUNS, THREADS; see the head of the Makefile.\n'

# ---- Banner and requirements ---------------------------------------------------------------------------------------------------

include banner.mk

requirements:
	@missing="$(MISSING)"; if [ -n "$$missing" ]; then \
	  echo "Tessera cannot be built without: $$missing" >&2; \
	  echo "On Debian or Ubuntu: sudo apt-get install $$missing   (make demo and make test do it)" >&2; exit 1; fi

# ---- Rules ----------------------------------------------------------------------------------------------------------

# $(call Step,what,name) says what is made, and the how-manieth of all that this make makes: the first asks another make, which
# only counts.
Steps = $(eval Steps := $(shell $(MAKE) -n COUNTING=1 $(MAKEOVERRIDES) $(MAKECMDGOALS) 2>/dev/null | grep -c ': step'))$(Steps)
Step = $(if $(COUNTING),: step,$(eval Begun += .)printf '[%d/%d]  %-5s %s\n' $(words $(Begun)) $(Steps) $1 '$2')

# A stamp changes when its text does, and what depends on it is made again.
define STAMP
$(B)/$1: $(if $(COUNTING),,FORCE)
	@mkdir -p $$(@D); echo '$2' | cmp -s - $$@ || echo '$2' >$$@
endef
$(eval $(call STAMP,cxx_flags,$(CXX) $(CPPFLAGS) $(CXXFLAGS); cold: $(COLD)))
$(eval $(call STAMP,nvcc_flags,$(NVCC) $(NVCCFLAGS)))
$(eval $(call STAMP,link_flags,$(LDFLAGS) $(LIBS)))
$(eval $(call STAMP,library_objects,$(LIBRARY_OBJECTS)))
$(eval $(call STAMP,test_part_objects,$(TEST_PART_OBJECTS)))
FORCE:

# The library's own sources. The standard headers are compiled once for the hot ones and once for the cold ones; not with a
# sanitizer, so that a build tells what a source forgot to include.
LIBRARY_CC := $(wildcard $(FOLDERS:%=%/*.cc))
# What the standard library switches off for its own headers, which g++ forgets in what it has precompiled.
PRECOMPILED_WARNINGS := -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
# $(eval $(call PRECOMPILED,name,header,flags' name,level,sources))
define PRECOMPILED
$(5:%=$(B)/obj/%.o) $(B)/precompiled/$1.h.gch: LEVEL := $4
ifeq ($(SANITIZE)$(findstring clang,$(CXX)),)
$(5:%=$(B)/obj/%.o) $(B)/precompiled/$1.h.gch: HEADER := $(B)/precompiled/$1.h
$(5:%=$(B)/obj/%.o): $(B)/precompiled/$1.h.gch
endif
$(B)/precompiled/$1.h.gch: private COMPILED = $2
$(B)/precompiled/$1.h.gch: private FLAGS = $$($3)
$(B)/precompiled/$1.h.gch: $2
endef
$(eval $(call PRECOMPILED,library,base/standard_headers.h,LIBRARY_FLAGS,$(LEVEL),$(filter-out $(COLD),$(LIBRARY_CC))))
$(eval $(call PRECOMPILED,cold,base/standard_headers.h,LIBRARY_FLAGS,1,$(filter $(COLD),$(LIBRARY_CC))))
$(eval $(call PRECOMPILED,tests,tests/test_headers.h,TEST_FLAGS,1,$(OTHER_TESTS)))
$(eval $(call PRECOMPILED,unit_tests,tests/test_headers.h,TEST_FLAGS,$(if $(SANITIZE),1,0),$(UNIT_TESTS)))
$(B)/precompiled/%.h.gch: $(B)/cxx_flags | requirements
	@mkdir -p $(@D); $(call Step,c++,$(HEADER)); printf '\043include "$(COMPILED)"\n' >$(HEADER)
	@$(CXX) $(CPPFLAGS) $(filter-out -O%,$(CXXFLAGS)) -E -P $(HEADER) | cksum >$@.sum
	@$(CXX) $(CPPFLAGS) $(FLAGS) -x c++-header $(HEADER) -o $@

# The host interpreter's loops are short: where the linker happens to put them decided between 226 and 242 ms for the SSB.
$(B)/obj/vm/machine/interpreter.cc.o $(B)/obj/vm/machine/tile_mask.cc.o: private CXXFLAGS += -falign-functions=64 -falign-loops=32
# What is left of tests: the ledger's programs, whose flags its numbers stand for.
$(B)/obj/tests/%.cc.o: private CXXFLAGS := $(subst -O3,-O1,$(CXXFLAGS))

$(LIBRARY_CC:%=$(B)/obj/%.o): $(B)/obj/%.cc.o: %.cc $(B)/cxx_flags | requirements
	@mkdir -p $(@D); $(call Step,c++,$<)
	@$(CCACHE_CXX) $(CXX) $(CPPFLAGS) $(LIBRARY_FLAGS) $(HEADER:%=-include % $(PRECOMPILED_WARNINGS)) -MMD -MP -c $< -o $@
$(UNIT_TESTS:%=$(B)/obj/%.o) $(OTHER_TESTS:%=$(B)/obj/%.o): $(B)/obj/%.cc.o: %.cc $(B)/cxx_flags | requirements
	@mkdir -p $(@D); $(call Step,c++,$<)
	@$(CCACHE_CXX) $(CXX) $(CPPFLAGS) $(TEST_FLAGS) $(HEADER:%=-include % $(PRECOMPILED_WARNINGS)) -MMD -MP -c $< -o $@
$(B)/obj/%.cc.o: %.cc $(B)/cxx_flags | requirements
	@mkdir -p $(@D); $(call Step,c++,$<)
	@$(CCACHE) $(CXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c $< -o $@

$(B)/obj/%.cu.o: %.cu $(B)/nvcc_flags | requirements
	@mkdir -p $(@D); $(call Step,nvcc,$<)
	@$(CCACHE) $(NVCC) -ccbin $(CXX) $(NVCCFLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

# Kernels that launch kernels are linked on the device first, with CUDA's runtime for that.
$(DEVICE_LINKED:%=$(B)/obj/%.o): NVCCFLAGS += -rdc=true
$(B)/obj/device_link.o: $(DEVICE_LINKED:%=$(B)/obj/%.o)
	@$(call Step,nvcc,$@)
	@$(NVCC) -ccbin $(CXX) -Xcompiler -fPIC $(DEVICE_CODE) -dlink $^ -o $@ -lcudadevrt

# Open MPI's C interface alone; its headers are not ours to warn about. None of our symbols: it may be loaded into any program.
$(B)/tessera_mpi.so: mpi/transport_mpi.cc mpi/transport.h base/status.h $(B)/cxx_flags | requirements
	@$(if $(MPICXX),,echo "Ranks need Open MPI: $(MPI_MISSING)" >&2; exit 1)
	@$(call Step,mpi,$@)
	@$(CXX) $(CPPFLAGS) -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX $(patsubst -I%,-isystem %,$(shell $(MPICXX) --showme:compile)) \
	  $(CXXFLAGS) -fPIC -shared -fvisibility=hidden $< -o $@ $(LDFLAGS) $(filter-out -lmpi_cxx,$(shell $(MPICXX) --showme:link))

# The C interface as a shared object that may be loaded into any program: it exports what capi/tessera.map names, and nothing else.
# Its standard library is its own, because that has to allocate by Tessera's operator new, which the program must not. It stays
# when it is closed: what it handed out may live on. memory_budget.cc is another one: malloc is the program's.
SHARED_OBJECTS := $(C_OBJECTS) $(B)/obj/shared/base/memory_budget.cc.o
# (The archive of RE2 is for programs only. What Tessera calls of it hands over no memory.)
SHARED_LIBS = $(patsubst -lsqlite3,$(call Archive,sqlite3),$(patsubst -lz,$(call Archive,z),$(patsubst -l:libre2.a,-lre2,$(filter-out -ledit,$(LIBS))))) -lm
Archive = $(if $(call HasLibrary,$1.a),-l:lib$1.a,-l$1)
$(B)/obj/shared/%.cc.o: %.cc $(B)/cxx_flags | requirements
	@mkdir -p $(@D); $(call Step,c++,$<)
	@$(CCACHE_CXX) $(CXX) $(CPPFLAGS) -DTESSERA_SHARED_LIBRARY $(LIBRARY_FLAGS) -MMD -MP -c $< -o $@
$(B)/libtessera.so: $(SHARED_OBJECTS) $(B)/libtessera.a capi/tessera.map $(B)/link_flags
	@$(call Step,link,$@)
	@$(CXX) $(LDFLAGS) -shared -Wl,--version-script=capi/tessera.map -Wl,--no-undefined -Wl,-z,nodelete -Wl,-soname,libtessera.so.0 -Wl,-rpath,'$$ORIGIN' \
	  -static-libstdc++ -static-libgcc -o $@ $(filter %.o %.a,$^) $(SHARED_LIBS)
	@ln -sf libtessera.so $@.0
$(B)/capi_example: capi/example.c capi/tessera.h capi/arrow.h $(B)/libtessera.so
	@$(call Step,cc,$<)
	@$(CC) -std=c99 -O1 -Wall -Wextra -Wpedantic -Werror -Icapi $< -o $@ -L$(B) -l:libtessera.so -Wl,-rpath,'$$ORIGIN'

# Arrow's headers are not ours to warn about. Its libraries are found where they are now, or beside the plugin.
$(COLUMNAR_OBJECTS): private CPPFLAGS += $(PYARROW:%=-isystem %/include)
$(COLUMNAR_OBJECTS): private CXXFLAGS += -fPIC -fvisibility=hidden
$(B)/tessera_arrow.so: $(COLUMNAR_OBJECTS)
	@$(if $(PYARROW),,echo "Parquet and Arrow files need the Python package pyarrow: make arrow" >&2; exit 1)
	@$(call Step,arrow,$@)
	@$(CXX) $(CXXFLAGS) -shared -Wl,--no-undefined -Wl,-rpath,'$$ORIGIN:$(abspath $(PYARROW))' $^ -o $@ $(LDFLAGS) \
	  -L$(PYARROW) $(ARROW_LIBRARIES:%=-l:%)

# The archive is made anew: an object whose source is gone must not stay in it.
$(B)/libtessera.a: $(LIBRARY_OBJECTS) $(B)/library_objects
	@rm -f $@; ar rcs $@ $(LIBRARY_OBJECTS)
$(B)/libtests.a: $(TEST_PART_OBJECTS) $(B)/test_part_objects
	@rm -f $@; ar rcs $@ $(TEST_PART_OBJECTS)

# Link = $(call Link,objects and archives)
Link = $(call Step,link,$@); $(CXX) $(LDFLAGS) -o $@ $1 $(LIBS)

define PROGRAM_RULE
$(B)/$(notdir $(1:.cc=)): $(B)/obj/$1.o $(if $(filter tests/%,$1),$(PROGRAM_PARTS:%=$(B)/obj/%.o)) $(B)/libtessera.a \
    $(B)/link_flags
	@$$(call Link,$$(filter %.o %.a,$$^))
endef
$(foreach s,$(PROGRAM_SOURCES),$(eval $(call PROGRAM_RULE,$s)))
# Who makes the shell alone (make demo) may start it under mpirun.
$(B)/tessera: | $(MPI_OBJECT)

$(B)/capi_test: $(C_OBJECTS)
define TEST_RULE
$(B)/$(notdir $(1:.cc=)): $(B)/obj/$1.o $(B)/libtests.a $(B)/libtessera.a $(B)/link_flags
endef
$(foreach s,$(filter %_test.cc,$(TEST_SOURCES)),$(eval $(call TEST_RULE,$s)))
# (Private: what such a program needs first may be one that is linked as before.)
$(TESTS:%=$(B)/%) $(TORTURES:%=$(B)/%) $(filter-out %.so,$(EMULATED)): private LDFLAGS += $(FAST_LINKER)
$(TESTS:%=$(B)/%):
	@$(if $(MISSING_TEST),echo "The tests need GoogleTest: sudo apt-get install libgtest-dev" >&2; exit 1)
	@$(call Link,$(filter %.o %.a,$^) -lgtest_main -lgtest)

$(FILE_TORTURES:%=$(B)/%): $(FILE_LAYER:%=$(B)/obj/%.o)
$(TORTURES:%=$(B)/%): $(B)/torture_%: $(B)/obj/tests/torture/%.cc.o $(TORTURE_PARTS:%=$(B)/obj/%.o) $(B)/libtests.a \
    $(B)/libtessera.a $(B)/link_flags
	@$(call Link,$(filter %.o %.a,$^))

# Calls of CUDA go through the campaign, which lets them fail: those that it has a __wrap_ of.
WrapCalls = $(patsubst %,-Wl$(COMMA)--wrap=%,$(shell sed -nE 's/^(WRAPPED.k[A-Za-z]+, |WAITS.)(cuda[A-Za-z]+),.*/\2/p' \
  tests/torture/cuda_calls.cc) cudaGetLastError)
$(B)/torture_cuda_calls $(B)/emulated/torture_cuda_calls: LDFLAGS += $(WrapCalls)

# Named by `make fuzz` alone, whose build folder and compiler are others.
$(FUZZ_SOURCES:tests/fuzz/%.cc=$(B)/%): $(B)/%: $(B)/obj/tests/fuzz/%.cc.o $(B)/libtests.a $(B)/libtessera.a $(B)/link_flags
	@$(call Link,-fsanitize=fuzzer $(filter %.o %.a,$^))

-include $(patsubst %,$(B)/obj/%.d,$(ALL_SOURCES))
