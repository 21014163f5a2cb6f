"""Variables within templates, where g++ forgets which symbol or section a variable has."""

import numpy as np
import pytest

import rooflab as rl

_SHARED = """
template <class T> __device__ T* of_function() { extern __shared__ T raw[]; return raw; }
template <class T> struct SharedMemory {
  __device__ operator T*() { extern __shared__ __align__(16) unsigned char bytes[]; return (T*)bytes; }
};
namespace outer { namespace {
template <class T> __device__ T* within() { extern __shared__ T rows[][2]; return rows[0]; }
} }
__device__ float* plain() { extern __shared__ float others[]; return others; }
__device__ void mirror(float* s, float* y) {
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = plain()[31 - threadIdx.x];
}
template <class T> __global__ void templated(T* y) { extern __shared__ T own[]; mirror(own, y); }
template __global__ void templated<float>(float*);
__global__ void by_function(float* y) { mirror(of_function<float>(), y); }
__global__ void by_operator(float* y) { SharedMemory<float> s; mirror(s, y); }
__global__ void by_namespace(float* y) { mirror(outer::within<float>(), y); }
__global__ void by_lambda(float* y) {
  auto at = [](auto i) { extern __shared__ float in_lambda[]; return in_lambda + i; };
  mirror(at(0), y);
}
"""


def test_dynamic_shared_memory_begins_at_one_place_in_templates_too():
    module = rl.cuda.compile(_SHARED, backend="simt")
    for name in module.kernels:
        y = np.zeros(32, np.float32)
        counts = module[name](1, 32, y, shared_bytes=128, mode="count").counts
        assert y.tolist() == list(range(31, -1, -1)), name
        assert (counts.shared_loads.requests, counts.shared_stores.requests) == (1, 1), name
    assert len(module.kernels) == 5


_VARIABLES = """
template <class T> __device__ T total = 4;
template <> __device__ short total<short> = 100;
namespace inner { template <class T> __device__ T other = 5; }
template <class T> __constant__ T table[2] = {1000, 2020};
template <int N> __device__ int* own() { __shared__ int s[N]; return s; }
__global__ void k(int* y) {
  own<3>()[0] = table<int>[1] + total<short>;
  y[blockIdx.x] = atomicAdd(&total<int>, 1) + atomicAdd(&inner::other<int>, 1) + own<3>()[0];
}
"""


def test_a_template_of_a_variable_is_global_or_constant_and_not_shared(build):
    y = np.zeros(3, np.int32)
    counts = build(_VARIABLES)(3, 1, y, mode="count").counts
    assert y.tolist() == [2129, 2131, 2133]
    assert counts.global_atomics.requests == 6
    assert (counts.shared_atomics.requests, counts.shared_loads.requests, counts.shared_stores.requests) == (0, 3, 3)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("template <class T> static __device__ T v;", "a static template of a variable"),
        ("namespace { template <class T> __device__ T v = 1; }", "one in a namespace without a name"),
        ("extern __device__ int v;", "v is declared with extern, and defined nowhere"),
    ],
)
def test_a_variable_that_lies_nowhere_is_refused(refused, declared, said):
    used = "v" if "extern" in declared else "v<int>"
    assert said in refused(f"{declared}\n__global__ void k(int* y) {{ y[0] = {used}; }}")
