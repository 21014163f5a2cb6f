"""The names of CUDA C++ that are known here, and those that are refused, each with what it is."""

from __future__ import annotations

import difflib
import functools
import re
from pathlib import Path

from .tokens import Refused, Token

HEADERS = Path(__file__).parent / "runtime" / "device"
_INCLUDE_LIST = """
assert.h cassert cfloat climits cmath cooperative_groups.h cooperative_groups/reduce.h cstddef cstdint cstdio cstring
cuda.h cuda_bf16.h cuda_fp16.h cuda_runtime.h cuda_runtime_api.h device_functions.h device_launch_parameters.h float.h
limits.h math.h math_constants.h mma.h stddef.h stdint.h stdio.h stdlib.h cstdlib string.h vector_functions.h
vector_types.h"""
_QUALIFIER_LIST = """
__global__ __device__ __host__ __shared__ __constant__ __restrict__ __restrict __forceinline__ __noinline__ __inline__
__launch_bounds__ __grid_constant__ __align__ __CUDA_ARCH__ __CUDACC__ __LINE__ __FILE__ __VA_ARGS__
__half __half2 __nv_bfloat16 __nv_bfloat162
__builtin_assume __builtin_assume_aligned __builtin_expect __builtin_unreachable"""
VECTOR = re.compile("(u?(char|short|int|long|longlong)|float|double)[24]")
INCLUDES, _QUALIFIERS = frozenset(_INCLUDE_LIST.split()), frozenset(_QUALIFIER_LIST.split())
# What no macro may stand for: C++'s own words, and those that the headers' macros write into the source.
_KEYWORD_LIST = """
alignas alignof and and_eq auto bitand bitor bool break case catch char char16_t char32_t class compl const const_cast
constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern false float for
friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected
public register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template
this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
xor_eq
aligned always_inline arguments noinline no_sanitize places section used visibility"""
KEYWORDS = frozenset(_KEYWORD_LIST.split())
ALIGNMENTS = frozenset(["__align__", "alignas"])
# What a macro may stand for that makes a function one of the device.
OF_FUNCTIONS = frozenset(
    ["__device__", "__host__", "__forceinline__", "__noinline__", "__inline__", "inline", "static"]
)
# What may stand before `static`.
_BEFORE_STATIC_LIST = """
__device__ __host__ __forceinline__ __noinline__ __inline__ __shared__ inline constexpr const"""
BEFORE_STATIC = frozenset(_BEFORE_STATIC_LIST.split())
ATTRIBUTES = frozenset(["maybe_unused", "nodiscard", "likely", "unlikely", "fallthrough"])
DIRECTIVES = ("define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "error", "include", "pragma")
_DIGRAPHS = ("%:", "<:", "<%", ":>", "%>")  # which say # and brackets in another way
PRAGMAS = re.compile("(no)?unroll|once|(nv_)?diag_.*|nv_exec_check_disable|hd_warning_disable")
# CUDA's functions of numbers that are not there, with and without an f behind.
_FUNCTION_LIST = """
cyl_bessel_i0 cyl_bessel_i1 erfcx remquo rnorm scalbln"""
_HEAP, _CLOCK = "memory from the device's heap", "a clock, which would not tell a GPU's time,"
_HOST = "code of the host is not supported: leave it out, and launch the kernel with module[name](grid, block, ...)"
# What an include that is not there is for, and what to write in its place.
_OTHER_HEADERS = {
    "cuda/|cub/|thrust/|cute/|cutlass/": "CUDA's C++ libraries are not there: write barriers, shuffles and atomics",
    "cooperative_groups/": "only the block, tiles, coalesced_threads and reduce are there",
    "cuda_pipeline": "write loads and stores to shared memory, and __syncthreads",
    "curand": "random numbers are not there: pass them as an array",
}
_REFUSED = {
    **dict.fromkeys(["asm", "__asm__", "__asm"], "inline PTX (asm)"),
    **dict.fromkeys(["cudaTextureObject_t", "cudaSurfaceObject_t"], "a texture or surface"),
    **dict.fromkeys(
        ["CUtensorMap", "__cluster_dims__", "this_cluster", "cluster_group"], "a cluster of blocks, or TMA,"
    ),
    **dict.fromkeys(["new", "delete"], _HEAP),
    **dict.fromkeys(["try", "catch", "throw", "typeid", "dynamic_cast"], "an exception or the type of an object"),
    **dict.fromkeys(["virtual", "override"], "a virtual function"),
    **dict.fromkeys(["__attribute__", "__attribute", "_Pragma", "__pragma"], "a compiler's attribute or pragma"),
    **dict.fromkeys(["gnu", "clang", "noreturn"], "a compiler's attribute"),  # between brackets, which macros may hide
    **dict.fromkeys(["_init", "_fini"], "a function that runs before or after the kernel"),
    "thread_local": "a variable of each host thread",
    "__managed__": "__managed__ (write __device__)",
    "register": "register",
}
# Names that a variable may have too: refused before the sign that makes them what they are in CUDA and C++.
_REFUSED_BEFORE = {
    **dict.fromkeys([("malloc", "("), ("free", "(")], _HEAP),
    **dict.fromkeys([(name, "(") for name in ("clock", "clock64", "globaltimer")], _CLOCK),
    **{(name + end, "("): f"the function {name + end}" for name in _FUNCTION_LIST.split() for end in ("", "f")},
    **dict.fromkeys([("texture", "<"), ("surface", "<")], "a texture or surface"),
    **dict.fromkeys([("std", "::"), ("namespace", "std")], "the C++ standard library"),
}
_HOST_NAMES = frozenset(["main", "cudaMalloc", "cudaMemcpy", "cudaDeviceSynchronize"])
_WITHOUT_MASK = re.compile("__(shfl(_up|_down|_xor)?|ballot|any|all)")  # of CUDA before 9


@functools.cache
def _device_names() -> frozenset[str]:
    """Names with two underscores that the headers define for kernels."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(HEADERS.glob("*.h")))
    functions = re.findall(r"RL_INLINE [\w ,<>:*&]*?(__\w+)\(", text)
    return frozenset(functions) | frozenset(
        re.findall(r"RL_(?:SHUFFLE|WARP_REDUCE|LOAD|STORE)\((__\w+)", text)
        + [name + way for name in re.findall(r"RL_CONVERSION\((__\w+)", text) for way in ("_rn", "_rz", "_rd", "_ru")]
    )


@functools.cache
def _of_std() -> frozenset[str]:
    """What the headers have in the namespace std."""
    return frozenset(re.findall(r"using ::(\w+);", (HEADERS / "standard.h").read_text(encoding="utf-8")))


def refused_include(name: str, line: int) -> Refused:
    """The error of an `#include` that is not known, such as ``<vector>``."""
    for pattern, why in _OTHER_HEADERS.items():
        if re.match(f".(?:{pattern})", name):
            return Refused(line, f"#include {name} is not supported: {why}")
    only = "only CUDA's own headers of types and functions are"
    return Refused(line, f"#include {name} is not supported: {only}, so leave the line out")


def check_names(tokens: list[Token]) -> None:
    """Refuse a name that is not supported, or that is nothing known and begins as the system's names do.

    Raises
    ------
    Refused
        At such a name.
    """
    for at, token in enumerate(tokens):
        before = tokens[at - 1].text if at > 0 else ""
        after = [each.text for each in tokens[at + 1 : at + 3]]
        if token.text == "std" and (before, after[:1]) == ("namespace", [";"]):
            continue
        if token.text == "namespace" and (before, after) == ("using", ["std", ";"]):
            continue
        if token.text == "std" and after[:1] == ["::"] and after[1:] and after[1] in _of_std():
            continue
        _check_name(token, after[0] if after else "")


def _check_name(token: Token, after: str) -> None:
    text = token.text
    if text in ("##", *_DIGRAPHS):
        what = "joining of tokens (##)" if text == "##" else f"the digraph {text}"
        raise Refused(token.line, f"{what} is not supported")
    if text == "<<<":
        how = "launch it from Python with module[name](grid, block, ...)"
        raise Refused(token.line, f"a launch from a kernel or from the host (<<<) is not supported: {how}")
    if token.kind != "name":
        return
    if text in _HOST_NAMES:
        raise Refused(token.line, _HOST)
    if refused := _REFUSED.get(text) or _REFUSED_BEFORE.get((text, after)):
        raise Refused(token.line, f"{refused} is not supported")
    if re.match(r"tex\dD|surf\dD|tex3D|cudaLaunch", text):
        raise Refused(token.line, f"{text} is not supported")
    if _WITHOUT_MASK.fullmatch(text):
        how = f"write {text}_sync, whose first argument is a mask of lanes, such as 0xffffffff"
        raise Refused(token.line, f"{text} is not supported: {how}")
    if text.startswith("__") and text not in _QUALIFIERS and text not in _device_names():
        near = difflib.get_close_matches(text, _device_names() | _QUALIFIERS, 1, 0.8)
        raise Refused(token.line, f"{text} is not supported{f': did you mean {near[0]}?' if near else ''}")
    if text.startswith(("rl_", "RL_")):
        raise Refused(token.line, f"{text} is not supported: names that begin with rl_ are taken")
