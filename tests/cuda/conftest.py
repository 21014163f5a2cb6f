"""Kernels that the tests of this folder launch."""

import pytest

import rooflab as rl

SOURCE = """
// __global__ void add(int commented, out);
__global__ void add(const float* __restrict__ a, const float *b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
extern "C" __global__ void __launch_bounds__(256) mixed(double* out, float s, double d, unsigned u, size_t z, bool f,
                                                        long long w, signed char c) {
  out[0] = s, out[1] = d, out[2] = u, out[3] = double(z), out[4] = f, out[5] = double(w), out[6] = c;
}
template <int D>
__global__ void fill(float* x) { x[threadIdx.x] = D; }
template __global__ void fill<64>(float*);
__global__ void reverse(const int* x, int* y) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
__global__ void where(int* out, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  out[(blockIdx.z * gridDim.y * blockDim.y + y) * width + x] = 100 * blockIdx.z + 10 * y + x;
}
struct Pair { int a[2]; };
__global__ void structure(Pair pair, const void* any) {}
"""


@pytest.fixture(scope="module")
def module():
    try:
        return rl.cuda.compile(SOURCE, backend="gpu")
    except rl.CudaError as missing:
        pytest.skip(str(missing))
