#include "kernels/memory/stop_word.h"

namespace tessera::kernels {

StopWord::~StopWord() {
  if (stream_ != nullptr) IgnoreError(cudaStreamDestroy(stream_));
}

Status StopWord::Open() {
  // (An earlier call may have come so far.)
  if (stream_ == nullptr) CUDA_TRY(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  TESSERA_TRY(one_.Reserve(sizeof(uint32_t)));
  *one_.As<uint32_t>() = 1;
  return Status::Ok();
}

Status StopWord::Send(uint32_t* stop) {
  CUDA_TRY(cudaMemcpyAsync(stop, one_.As<void>(), sizeof(uint32_t), cudaMemcpyHostToDevice, stream_));
  CUDA_TRY(cudaStreamSynchronize(stream_));
  return Status::Ok();
}

}  // namespace tessera::kernels
