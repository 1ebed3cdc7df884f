# What was found on this machine, and how to get what was not. Included by the Makefile.

OrMissing = $(if $(filter $1,$(MISSING) $(MISSING_TEST) $(MISSING_EMULATOR) $(MISSING_CLIENT)),NOT FOUND: sudo apt-get install $1,found)
GXX_VERSION = $(shell $(CXX) -dumpfullversion 2>/dev/null)
CACHED = $(if $(CCACHE),$(COMMA) ccache)
CUDA_FOUND = $(if $(NVCC),$(CUDA_VERSION) in $(CUDA_HOME)$(COMMA) for $(CUDA_ARCHS:%=sm_%))
MPI_MISSING = $(if $(MPICXX_FOUND),$(MPICXX_FOUND) without mpi.h: sudo apt-get install libopenmpi-dev,not found: sudo apt-get install libopenmpi-dev openmpi-bin)
CUDA_HINT := Get it from https://developer.nvidia.com/cuda-downloads

define BANNER
Tessera
  compiler       $(if $(call Has,gcc),g++ $(GXX_VERSION),NOT FOUND: g++ 12 or later; sudo apt-get install g++)$(CACHED)
  libpg_query    $(call OrMissing,libpg-query-dev)
  RE2            $(call OrMissing,libre2-dev)
  utf8proc       $(call OrMissing,libutf8proc-dev)
  zstd           $(call OrMissing,libzstd-dev)
  SQLite         $(call OrMissing,libsqlite3-dev)
  libedit        $(call OrMissing,libedit-dev)
  fmt            $(call OrMissing,libfmt-dev)
  xxhash         $(call OrMissing,libxxhash-dev)
  nlohmann-json  $(call OrMissing,nlohmann-json3-dev)
  tz database    $(if $(wildcard /usr/share/zoneinfo/Etc/UTC),found,not found: sudo apt-get install tzdata (for time zones))
  asio           $(call OrMissing,libasio-dev) (for tessera --serve only)
  OpenSSL        $(call OrMissing,libssl-dev) (for tessera --serve only)
  libpq          $(call OrMissing,libpq-dev) (for tessera --host only)
  GoogleTest     $(call OrMissing,libgtest-dev)
  Boost.Context  $(call OrMissing,libboost-context-dev)
  CUDA toolkit   $(or $(CUDA_FOUND),$(if $(NOCUDA),not used: host only,not found: host only. $(CUDA_HINT)))
  GPU            $(or $(subst _, ,$(GPUS)),none: queries run on the host)
  Open MPI       $(or $(MPICXX),$(MPI_MISSING) (for clusters only))
  Apache Arrow   $(or $(PYARROW),not found: make arrow (for Parquet and Arrow files))
endef

# Shown once, by the make that builds.
BANNER_GOALS := all programs tests demo-ssb-run demo-tpch-run test-run torture-run test-gpu bench-ssb-run bench-tpch-run bench-sql-run bench-join-run bench-ranks-run bench-exchange-run bench-scaling-run bench-compression-run bench-stream-run bench-model-run bench-insert-run
ifneq ($(filter $(BANNER_GOALS),$(or $(MAKECMDGOALS),all)),)
ifeq ($(NOBUILD),)
$(info $(BANNER))
endif
endif
