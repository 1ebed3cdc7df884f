# The kernels on the host: g++ compiles them as C++ (cuda_cpp.h has the qualifiers and built-ins of CUDA C++, kernels/ and
# cub/ what stands for a device's own instructions and libraries), runtime.cc is CUDA's runtime, and build/emulated/ has
# the programs that test a GPU, linked with these instead of with CUDA. Included by the Makefile; needs the headers of
# the CUDA toolkit and Boost.Context, and makes nothing where they are missing.

EMULATOR := tests/cuda_emulator
# What the emulator compiles anew: the kernels and itself. The rest are the library's own objects.
EMULATED_SOURCES := $(wildcard $(KERNEL_FOLDERS:%=%/*.cu)) $(EMULATOR)/block.cc $(EMULATOR)/runtime.cc
EMULATED_OBJECTS := $(EMULATED_SOURCES:%=$(B)/emulated/obj/%.o) \
  $(patsubst %,$(B)/obj/%.o,$(filter-out kernels/no_gpu.cc,$(wildcard $(KERNEL_FOLDERS:%=%/*.cc)))) \
  $(filter-out $(B)/obj/kernels/% $(B)/obj/device_link.o,$(LIBRARY_OBJECTS))
# Tests of a GPU ask for one.
EMULATED_TEST_SOURCES := $(shell grep -lE 'TESSERA_TEST_DEVICE|GpuCount' /dev/null $(filter %_test.cc,$(TEST_SOURCES)))
EMULATED_TESTS := $(notdir $(EMULATED_TEST_SOURCES:.cc=))
# (Not with a sanitizer: the thread sanitizer would have to be told of each change of fibers, and the kernels wrap around in
# signed arithmetic here and there, as a device does.)
ifeq ($(SANITIZE)$(if $(CUDA_HOME),,none),)
EMULATED = $(if $(MISSING_TEST)$(MISSING_EMULATOR),,$(addprefix $(B)/emulated/,tessera sqllogictest torture_cuda_calls torture_packed_trees transfer_bench nccl.so $(EMULATED_TESTS) $(MPI_OBJECT:$(B)/%=%)))
endif

# Memory of the device has no types, and shared memory starts as the block left it. Warnings are nvcc's to give: it sees
# the same lines without the emulator's definitions.
EMULATED_FLAGS = -I$(EMULATOR) -isystem $(CUDA_HOME)/include $(CPPFLAGS) $(CXXFLAGS) -fno-strict-aliasing -fno-extern-tls-init
EMULATED_LIBS := $(SERVER_LIBS) -lsqlite3 -l:libpg_query.a -l:libre2.a -l:libutf8proc.a -l:libzstd.a -lz -ledit -ldl -l:libboost_context.a

# The one thing that is not C++: kernel<<<grid, block, shared, stream>>>(arguments).
.SECONDARY: $(patsubst %,$(B)/emulated/src/%,$(filter %.cu,$(EMULATED_SOURCES)))
$(B)/emulated/src/%.cu: %.cu
	@mkdir -p $(@D)
	@{ printf '\043line 1 "%s"\n' $<; \
	   sed -E 's/(\w+(<[^<>]*>)?)<<<(.*)>>>\(/::cuda_emulator::Configure(\3)(\1, /' $<; } >$@
$(B)/emulated/obj/%.cu.o: $(B)/emulated/src/%.cu $(B)/cxx_flags
	@mkdir -p $(@D); $(call Step,c++,$*.cu$(COMMA) emulated)
	@$(CCACHE) $(CXX) $(EMULATED_FLAGS) -w -include $(EMULATOR)/cuda_cpp.h -x c++ -MMD -MP -c $< -o $@
$(B)/emulated/obj/%.cc.o: %.cc $(B)/cxx_flags
	@mkdir -p $(@D); $(call Step,c++,$<)
	@$(CCACHE) $(CXX) $(EMULATED_FLAGS) -MMD -MP -c $< -o $@
$(B)/emulated/libtessera.a: $(EMULATED_OBJECTS)
	@rm -f $@; ar rcs $@ $^

EmulatedLink = $(call Step,link,$@); $(CXX) $(LDFLAGS) -o $@ $1 $(EMULATED_LIBS)
$(B)/emulated/tessera: $(B)/obj/shell/tessera.cc.o $(B)/emulated/libtessera.a
	@$(call EmulatedLink,$^)
$(B)/emulated/sqllogictest: $(B)/obj/tests/sqllogictest/sqllogictest.cc.o $(PROGRAM_PARTS:%=$(B)/obj/%.o) $(B)/emulated/libtessera.a
	@$(call EmulatedLink,$^)
$(B)/emulated/torture_%: $(B)/obj/tests/torture/%.cc.o $(TORTURE_PARTS:%=$(B)/obj/%.o) $(B)/libtests.a \
    $(B)/emulated/libtessera.a
	@$(call EmulatedLink,$^)
$(B)/emulated/%_bench: $(B)/obj/bench/%.cc.o $(B)/emulated/libtessera.a
	@$(call EmulatedLink,$^)
define EMULATED_TEST_RULE
$(B)/emulated/$(notdir $(1:.cc=)): $(B)/obj/$1.o $(B)/libtests.a $(B)/emulated/libtessera.a
endef
$(foreach s,$(EMULATED_TEST_SOURCES),$(eval $(call EMULATED_TEST_RULE,$s)))
$(EMULATED_TESTS:%=$(B)/emulated/%):
	@$(call EmulatedLink,$^ -lgtest_main -lgtest)

# Ranks with emulated GPUs exchange by an NCCL of their own, which waits for the program's streams.
EMULATED_LIBS += -Wl,--export-dynamic-symbol=cudaStreamSynchronize
$(B)/emulated/nccl.so: $(EMULATOR)/nccl.cc $(B)/cxx_flags
	@mkdir -p $(@D); $(call Step,link,$@); $(CXX) $(CPPFLAGS) $(CXXFLAGS) -fPIC -shared -o $@ $<

# The programs load it from beside them.
$(B)/emulated/tessera_mpi.so: $(MPI_OBJECT)
	@mkdir -p $(@D); ln -f $< $@

# (With NOCUDA=1 the kernels' host side is not among the Makefile's own sources.)
-include $(EMULATED_SOURCES:%=$(B)/emulated/obj/%.d) $(B)/obj/tests/torture/cuda_calls.cc.d $(patsubst %,$(B)/obj/%.d,$(wildcard $(KERNEL_FOLDERS:%=%/*.cc)))
