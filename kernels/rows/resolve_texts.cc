#include "kernels/rows/resolve_texts.h"

#include "kernels/cuda/cuda_memory.h"
#include "vm/rows/late_texts.h"

namespace tessera::kernels {

Status ResolveTexts(GpuDevice* gpu, const vm::SectionContext& context, uint64_t* values, uint64_t rows) {
  if (rows == 0) return Status::Ok();
  const uint64_t bytes = rows * sizeof(int64_t);
  TESSERA_TRY(gpu->buffers.host_rows.Reserve(bytes));
  int64_t* const here = gpu->buffers.host_rows.As<int64_t>();
  CUDA_TRY(cudaMemcpyAsync(here, values, bytes, cudaMemcpyDeviceToHost, gpu->stream));
  CUDA_TRY(cudaStreamSynchronize(gpu->stream));
  TESSERA_TRY(context.late_texts->Resolve(context.strings, context.pool, {here, rows}));
  CUDA_TRY(cudaMemcpyAsync(values, here, bytes, cudaMemcpyHostToDevice, gpu->stream));
  CUDA_TRY(cudaStreamSynchronize(gpu->stream));
  return Status::Ok();
}

}  // namespace tessera::kernels
