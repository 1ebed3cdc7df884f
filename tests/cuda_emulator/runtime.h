// Launches of kernels, and the streams, events and memory of CUDA's runtime, on the host: runtime.cc defines the
// functions of cuda_runtime_api.h that Tessera calls, so a program links with it instead of with CUDA.
//
// Blocks run on as many threads as the emulated device holds blocks; streams are threads, so copies and kernels are as
// asynchronous as on a device. Kernels can launch kernels (fire and forget, tail launches). Memory of the device is
// memory of the host, filled with a pattern when it is new and when it is freed, with a margin after it that is looked
// at; copies have to stay within what was allocated.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cuda_emulator {

inline const cudaStream_t kFireAndForget = reinterpret_cast<cudaStream_t>(uintptr_t{0x4});
inline const cudaStream_t kTailLaunch = reinterpret_cast<cudaStream_t>(uintptr_t{0x3});

struct Configuration {
  dim3 grid, block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

/// From the host into a stream, or from a kernel.
cudaError_t LaunchGrid(const Configuration& configuration, std::function<void()> kernel);

/// Runs f when the stream has come to it.
void Enqueue(cudaStream_t stream, std::function<void()> f);

/// kernel<<<grid, block, shared_bytes, stream>>>(arguments) is Configure(grid, block, shared_bytes, stream)(kernel,
/// arguments): so the Makefile writes it.
struct Launcher {
  Configuration configuration;
  template <class... P, class... A>
  void operator()(void (*kernel)(P...), A&&... arguments) const {
    LaunchGrid(configuration, [kernel, copies = std::tuple<std::remove_cv_t<P>...>(static_cast<P>(arguments)...)] {
      std::apply(kernel, copies);
    });
  }
};
inline Launcher Configure(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return {{grid, block, shared_bytes, stream}};
}

}  // namespace cuda_emulator
