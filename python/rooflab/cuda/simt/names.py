"""The names of CUDA C++ that are known here, and those that are refused, each with what it is."""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path

from .tokens import Refused, Token

HEADERS = Path(__file__).parent / "runtime" / "device"
_INCLUDE_LIST = """
assert.h cassert cfloat climits cmath cooperative_groups.h cooperative_groups/reduce.h cstddef cstdint cstdio cstring
cuda.h cuda_bf16.h cuda_fp16.h cuda_runtime.h cuda_runtime_api.h device_functions.h device_launch_parameters.h float.h
limits.h math.h math_constants.h mma.h stddef.h stdint.h stdio.h string.h vector_functions.h vector_types.h"""
_QUALIFIER_LIST = """
__global__ __device__ __host__ __shared__ __constant__ __restrict__ __restrict __forceinline__ __noinline__ __inline__
__launch_bounds__ __grid_constant__ __align__ __CUDA_ARCH__ __CUDACC__ __LINE__ __FILE__ __VA_ARGS__
__half __half2 __nv_bfloat16 __nv_bfloat162"""
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
SPACES = frozenset(["__global__", "__device__"])
VARIABLES = frozenset(["__constant__", "__device__"])
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
cospi cyl_bessel_i0 cyl_bessel_i1 erfcinv erfcx erfinv frexp ilogb norm3d norm4d normcdfinv
remquo rnorm rnorm3d rnorm4d scalbln sincospi sinpi"""
_HEAP, _CLOCK = "memory from the device's heap", "a clock, which would not tell a GPU's time,"
_REFUSED = {
    **dict.fromkeys(["asm", "__asm__", "__asm"], "inline PTX (asm)"),
    **dict.fromkeys(["cudaTextureObject_t", "cudaSurfaceObject_t"], "textures and surfaces"),
    **dict.fromkeys(["CUtensorMap", "__cluster_dims__", "this_cluster", "cluster_group"], "clusters and TMA"),
    **dict.fromkeys(["this_grid", "grid_group", "coalesced_threads"], "a group other than the block and its tiles"),
    **dict.fromkeys(["new", "delete"], _HEAP),
    **dict.fromkeys(["try", "catch", "throw", "typeid", "dynamic_cast"], "an exception or the type of an object"),
    **dict.fromkeys(["virtual", "override"], "a virtual function"),
    **dict.fromkeys(["__managed__", "cudaMalloc", "cudaMemcpy", "cudaDeviceSynchronize", "main"], "code of the host"),
    **dict.fromkeys(["__attribute__", "__attribute", "_Pragma", "__pragma"], "a compiler's attribute or pragma"),
    **dict.fromkeys(["gnu", "clang", "noreturn"], "a compiler's attribute"),  # between brackets, which macros may hide
    **dict.fromkeys(["_init", "_fini"], "a function that runs before or after the kernel"),
    "thread_local": "a variable of each host thread",
    "register": "register",
}
# Names that a variable may have too: refused before the sign that makes them what they are in CUDA and C++.
_REFUSED_BEFORE = {
    **dict.fromkeys([("malloc", "("), ("free", "(")], _HEAP),
    **dict.fromkeys([(name, "(") for name in ("clock", "clock64", "globaltimer")], _CLOCK),
    **{(name + end, "("): f"the function {name + end}" for name in _FUNCTION_LIST.split() for end in ("", "f")},
    **dict.fromkeys([("texture", "<"), ("surface", "<")], "textures and surfaces"),
    **dict.fromkeys([("std", "::"), ("namespace", "std")], "the C++ standard library"),
}


@functools.cache
def _device_names() -> frozenset[str]:
    """Names with two underscores that the headers define for kernels."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(HEADERS.glob("*.h")))
    functions = re.findall(r"RL_INLINE [\w ,<>:*&]*?(__\w+)\(", text)
    return frozenset(functions) | frozenset(
        re.findall(r"RL_(?:SHUFFLE|WARP_REDUCE|LOAD|STORE)\((__\w+)", text)
        + [name + way for name in re.findall(r"RL_CONVERSION\((__\w+)", text) for way in ("_rn", "_rz", "_rd", "_ru")]
    )


def check_names(tokens: list[Token]) -> None:
    """Refuse a name that is not supported, or that is nothing known and begins as the system's names do.

    Raises
    ------
    Refused
        At such a name.
    """
    for token, after in itertools.zip_longest(tokens, tokens[1:]):
        _check_name(token, after.text if after else "")


def _check_name(token: Token, after: str) -> None:
    text = token.text
    if text in ("##", "<<<", *_DIGRAPHS):
        what = {"##": "joining of tokens (##)", "<<<": "a launch from a kernel or from the host (<<<)"}
        raise Refused(token.line, f"{what.get(text, f'the digraph {text}')} is not supported")
    if token.kind != "name":
        return
    if refused := _REFUSED.get(text) or _REFUSED_BEFORE.get((text, after)):
        raise Refused(token.line, f"{refused} is not supported")
    if re.match(r"tex\dD|surf\dD|tex3D|cudaLaunch", text):
        raise Refused(token.line, f"{text} is not supported")
    if text.startswith("__") and text not in _QUALIFIERS and text not in _device_names():
        raise Refused(token.line, f"{text} is not supported")
    if text.startswith(("rl_", "RL_")):
        raise Refused(token.line, f"{text} is not supported: names that begin with rl_ are taken")
