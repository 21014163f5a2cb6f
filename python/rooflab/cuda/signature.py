"""The kernels of compiled CUDA C++ and what they take: from the PTX, the symbols' types and the source's names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .. import _core
from .elements import elements_of
from .gpu_kernel import Kernel

_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)")
_SCALAR = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.([a-z]\d+)\s+(?:\.ptr\b[^\[\],]*?)?[\w$]+\s*(\[\d+\])?")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BUILTIN = {"bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned"}


def kernels(source: str, options: Sequence[str], ptx: str, code: _core.cuda.Code) -> dict[str, Kernel]:
    """The kernels of a compiled source by name; the name of an overloaded one is its whole signature.

    Parameters
    ----------
    source : str
        CUDA C++: parameters get the names that it gives them.
    options : sequence of str
        What it was compiled with.
    ptx : str
        What NVRTC made of it: which kernels there are, and how large each parameter is.
    code : Code
        The machine code that their launches load.
    """
    entries = _ENTRY.findall(ptx)
    # A template's symbol tells the type that is returned, others do not.
    signatures = [_core.cuda.demangle(symbol).removeprefix("void ") for symbol, _ in entries]
    names = [_before_parameters(signature) for signature in signatures]
    made = {}
    for (symbol, declared), signature, name in zip(entries, signatures, names, strict=True):
        types = _split(signature[len(name) + 1 : -1])  # none where the symbol is not mangled
        sizes = _SCALAR.findall(declared)
        overloaded = names.count(name) > 1
        written = [("", "")] * len(sizes) if overloaded else written_parameters(source, name, len(sizes))
        key = signature if overloaded else name
        kinds = [types[place] if types else written[place][0] for place in range(len(sizes))]
        parameters = [
            _parameter(place, size, array, kinds[place], *written[place]) for place, (size, array) in enumerate(sizes)
        ]
        made[key] = Kernel(code, symbol, key, parameters, [_elements(kind) for kind in kinds], source, options)
    return made


_TEMPLATE = re.compile(r"template\s*<([^{};()]*)>\s*__global__[^{};]*?(\w+)\s*\(([^{};]*?)\)\s*[{;]")


def instance_of_template(source: str, name: str = "") -> str:
    """How a source asks for an instance of its template of this name, or of its first; "" where there is none.

    Parameters
    ----------
    source : str
        CUDA C++.
    name : str
        ``fill``, or ``fill<double>``.
    """
    plain, given, values = name.partition("<")
    for declared, called, taken in _TEMPLATE.findall(_COMMENT.sub(" ", source)):
        if name and called != plain:
            continue
        parts = [part.partition("=")[0].split() for part in _split(declared)]
        chosen = _split(values.rpartition(">")[0]) if given else ["float" if _is_type(part) else "64" for part in parts]
        for part, value in zip(parts, chosen, strict=False):
            taken = re.sub(rf"\b{part[-1]}\b", value, taken) if _is_type(part) else taken
        return f"template __global__ void {called}<{', '.join(chosen)}>({' '.join(taken.split())});"
    return ""


def _is_type(words: Sequence[str]) -> bool:
    """Whether these are the words of a template's parameter that is a type."""
    return words[0] in ("typename", "class")


def no_kernel(source: str) -> str:
    """What to say of a source that has no kernel.

    Parameters
    ----------
    source : str
        Perhaps with a template, or the name of a file.
    """
    said = "there is no kernel: expected a function that begins with __global__ void"
    if re.fullmatch(r"\S+\.cuh?", source.strip()):
        return f"{said}, and this is a file's name: give the text in it"
    instance = instance_of_template(source)
    return f"{said}; a template needs its instances too, such as {instance}" if instance else said


def _before_parameters(signature: str) -> str:
    """``f<(Mode)1>`` of ``f<(Mode)1>(float*)``: up to the last parenthesis that opens outside of others."""
    depth, opened = 0, len(signature)
    for place, letter in enumerate(signature):
        if letter == "(" and depth == 0:
            opened = place
        depth += (letter in "(<") - (letter in ")>")
    return signature[:opened]


def _split(text: str) -> list[str]:
    """Parts between commas that stand in no bracket."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def written_parameters(source: str, name: str, count: int) -> list[tuple[str, str]]:
    """(type, name) of each parameter as the source has it; ("", "") where a macro or a template hides it."""
    text = _COMMENT.sub(" ", source)
    plain = re.escape(re.split(r"[<:]+", re.sub(r"<.*", "", name))[-1])
    found = [("", "")] * count
    for match in re.finditer(rf"__global__[^;{{}}]*?\b{plain}\s*\(", text):
        depth = 1
        for end in range(match.end(), len(text)):
            depth += (text[end] == "(") - (text[end] == ")")
            if depth == 0:
                parts = [_declaration(part) for part in _split(text[match.end() : end])]
                found = parts if len(parts) == count else found  # a definition follows its declarations
                break
    return found


def _declaration(text: str) -> tuple[str, str]:
    """("const float*", "q") of ``const float* __restrict__ q = nullptr``."""
    text = re.sub(r"\b__(restrict|grid_constant)__\b|__restrict\b", " ", text.partition("=")[0]).strip()
    match = re.fullmatch(r"(.*?)\b([A-Za-z_]\w*)\s*(\[[^\]]*\])?", text, re.DOTALL)
    if not match or match[2] in _BUILTIN or not set(match[1].split()) - {"const", "volatile"}:
        kind, name = text, ""
    else:
        kind, name = match[1] + ("*" if match[3] else ""), match[2]
    return re.sub(r"\s*([*&])\s*", r"\1", " ".join(kind.split())), name


def _parameter(place: int, size: str, array: str, kind: str, written: str, name: str) -> _core.cuda.Parameter:
    shown = written or kind
    label = f"{name or f'argument {place + 1}'}{f' ({shown})' if shown else ''}"
    bits = int(size[1:])
    if array:
        return _core.cuda.Parameter(label, shown or "structures", 0)
    if kind.endswith("*"):
        dtypes = _elements(kind)
        dtype = dtypes[0] if len(dtypes) == 1 else None
        return _core.cuda.Parameter(label, "pointer", 8, dtype=dtype, is_written=not _is_const(kind[:-1]))
    if size.startswith("f"):
        return _core.cuda.Parameter(label, "real", bits // 8)
    plain = " ".join(word for word in kind.split() if word != "const")
    is_signed = not re.match(r"u(nsigned\b|int\d+_t$)|size_t$|bool$", plain)
    known = re.fullmatch(r"(unsigned |signed )?(bool|char|short|int|long|long long|unsigned|u?int\d+_t|size_t)", plain)
    return _core.cuda.Parameter(label, "any" if bits == 64 and not known else "integer", bits // 8, is_signed)


def _is_const(kind: str) -> bool:
    """Whether the type forbids writing: ``float const``, and ``float* const``, but not ``const float*``."""
    return re.split(r"[\s*&]+", kind.strip())[-1] == "const" or ("*" not in kind and "const" in kind.split())


def _elements(kind: str) -> tuple[str, ...]:
    """The dtypes that a parameter of this type takes."""
    return elements_of(re.sub(r"\b(const|volatile)\b", " ", kind[:-1])) if kind.endswith("*") else ()
