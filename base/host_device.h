// TESSERA_HD marks a function that both g++ and nvcc compile: the meaning of an opcode is written once.
#pragma once

#if defined(__CUDACC__)
#define TESSERA_HD __host__ __device__ __forceinline__
#else
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// With -O1, g++ 13 fails where such a function is called through a pointer.
#define TESSERA_HD inline
#else
#define TESSERA_HD inline __attribute__((always_inline))
#endif
#endif
