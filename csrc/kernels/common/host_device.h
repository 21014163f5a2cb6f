// Marks functions that are compiled for the CPU and the GPU from the same source.
#pragma once

#ifdef __CUDACC__
#define ROOFLAB_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define ROOFLAB_HOST_DEVICE [[gnu::always_inline]] inline
#endif
