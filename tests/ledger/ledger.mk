# The ledger of cost: programs that tests/ledger/ledger.py counts. Included by the Makefile.

LEDGER := $(B)/ledger $(if $(NVCC),$(B)/ledger_gpu) $(if $(EMULATED),$(B)/emulated/ledger_gpu)

# Calls of CUDA go through the program, which counts them.
$(B)/ledger_gpu $(B)/emulated/ledger_gpu: LDFLAGS += \
  $(patsubst %,-Wl$(COMMA)--wrap=%,$(shell sed -nE 's/^COUNTED\(.*, (.*)\);/\1/p' tests/ledger/ledger_gpu.cc))

$(B)/ledger $(B)/ledger_gpu: $(B)/%: $(B)/obj/tests/ledger/%.cc.o $(B)/libtessera.a $(B)/link_flags
	@$(call Link,$(filter %.o %.a,$^))
$(B)/emulated/ledger_gpu: $(B)/obj/tests/ledger/ledger_gpu.cc.o $(B)/emulated/libtessera.a
	@$(call EmulatedLink,$^)

-include $(B)/obj/tests/ledger/ledger.cc.d $(B)/obj/tests/ledger/ledger_gpu.cc.d
