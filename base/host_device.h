// TESSERA_HD marks a function that both g++ and nvcc compile: the meaning of an opcode is written once.
#pragma once

#if defined(__CUDACC__)
#define TESSERA_HD __host__ __device__ __forceinline__
#else
#define TESSERA_HD inline __attribute__((always_inline))
#endif
