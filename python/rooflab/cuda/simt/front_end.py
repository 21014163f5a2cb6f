"""CUDA C++ as a C++ compiler takes it. What is not on the lists here is refused by name.

This is a boundary too: native code shares a process with the checks, so nothing gets to the compiler that could turn
a check off (attributes, pragmas), hide from it (assembly) or run before it (static constructors). The assembly that
comes out is looked through again, by `assembly`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from . import declarations, names
from .declarations import closing_parenthesis, parameters_begin, spelled
from .tokens import Refused, Token, joined, tokens


@dataclass
class Translation:
    """C++ that `rooflab_cuda.h` completes, the kernels that it may have, by their names and lines, whether it gives
    structures an alignment, and the names of variables that g++ may put elsewhere, each with where it has to lie.
    """

    text: str
    kernels: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    aligns: bool = False
    places: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class _Kernel:
    name: str
    type: str
    line: int
    bound: tuple[int, str] | None  # of its __launch_bounds__: their number, and the variable with the most threads


def translate(source: str, defines: list[str]) -> Translation:
    """The C++ of CUDA C++ text, line for line.

    Parameters
    ----------
    source : str
        CUDA C++.
    defines : list of str
        What macros stand for, as ``NAME`` or ``NAME=value``.

    Raises
    ------
    Refused
        At what is not supported.
    """
    source = source.removeprefix("\ufeff")
    before = "".join(f"#define {define.replace('=', ' ', 1)}\n" for define in defines)
    given, found = _Source(before, 1 - before.count("\n")), _Source(source, 1)
    own = "".join(f"#define RL_OWN_{name}\n" for name in sorted(found.own_integers))
    kernels = "\n".join(_entry(i, kernel) for i, kernel in enumerate(found.kernels))
    headers, asserts = '#include "rooflab_cuda.h"', '#include "assertions.h"'
    text = f'{own}{headers}\n{given.text}{asserts}\n#line 1 "source"\n{found.edited()}\n#line 1 "kernels"\n{kernels}\n'
    called, lines = [kernel.name for kernel in found.kernels], [kernel.line for kernel in found.kernels]
    return Translation(text, called, lines, given.aligns or found.aligns, frozenset(found.places))


def _entry(number: int, kernel: _Kernel) -> str:
    what = f"::{kernel.type}, ::{kernel.name}"
    made = f"RL_KERNEL({number}, 1024, {what})"
    if kernel.bound:
        of, most = kernel.bound
        made = f"#ifdef RL_BOUND_{of}\nRL_KERNEL({number}, ({most}), {what})\n#else\n{made}\n#endif"
    return f"#ifdef RL_THERE_{number}\n{made}\n#else\nRL_NO_KERNEL({number})\n#endif"


class _Source:
    def __init__(self, text: str, first_line: int) -> None:
        self.text = text = joined(text + "\n")
        self.kernels: list[_Kernel] = []
        self.own_integers: set[str] = set()  # of those that programs without headers define themselves
        self.aligns = False  # structures, or perhaps so in a macro
        self.places: set[tuple[str, str]] = set()
        self._device_words = {"__device__"}  # and macros that stand for it, perhaps with __host__
        self._bounds: dict[str, int] = {}  # by the name of a kernel that has __launch_bounds__
        self._edits: list[tuple[int, int, str]] = []
        self._tokens = self._without_directives(tokens(text, first_line))
        names.check_names(self._tokens)
        self._check_pairs()
        self._declarations()
        self._rewrite()

    def edited(self) -> str:
        text, parts, at = self.text, [], 0
        for begin, end, new in sorted(self._edits):
            parts += [text[at:begin], new + "\n" * (text.count("\n", begin, end) - new.count("\n"))]
            at = end
        return "".join([*parts, text[at:]])

    def _without_directives(self, tokens: list[Token]) -> list[Token]:
        kept: list[Token] = []
        at, is_first = 0, True
        while at < len(tokens):
            token = tokens[at]
            if token.text == "#" and is_first:
                end = next((i for i in range(at, len(tokens)) if tokens[i].kind == "newline"), len(tokens))
                self._directive([t for t in tokens[at + 1 : end] if t.kind != "space"], token)
                at = end
                continue
            if token.kind == "newline":
                is_first = True
            elif token.kind != "space":
                is_first = False
                kept.append(token)
            at += 1
        return kept

    def _directive(self, tokens: list[Token], sign: Token) -> None:
        if not tokens:
            return
        name, rest = tokens[0].text, tokens[1:]
        end = tokens[-1].end
        if name not in names.DIRECTIVES:
            raise Refused(sign.line, f"#{name} is not supported")
        if name == "include":
            wanted = "".join(t.text for t in rest)
            if wanted[1:-1] not in names.INCLUDES:
                raise names.refused_include(wanted, sign.line)
            is_assert = wanted[1:-1] in ("assert.h", "cassert")
            self._edits.append((sign.begin, end, '#include "assertions.h"' if is_assert else ""))
        elif name == "pragma":
            if not rest or not names.PRAGMAS.fullmatch(rest[0].text):
                only = "only unroll and those of nvcc's warnings are"
                raise Refused(sign.line, f"#pragma {rest[0].text if rest else ''} is not supported: {only}")
            self._edits.append((sign.begin, end, ""))  # an unrolled loop is the same accesses
        elif name == "define" and (made := {t.text for t in rest} & {"__global__", "__launch_bounds__"}):
            raise Refused(sign.line, f"{made.pop()} in a macro is not supported: write it at the kernel itself")
        elif name != "error":
            defined = rest[0].text if rest and name in ("define", "undef") else ""
            if defined in names.KEYWORDS or defined.startswith("__"):
                raise Refused(sign.line, f"a macro named {defined} is not supported: the word has a meaning")
            if name in ("else", "elif", "endif"):  # a #line in what was left out did not count
                self._edits.append((end, end, f'\n#line {tokens[-1].line + 1} "source"'))
            if name == "define" and (body := {t.text for t in rest[1:]}) <= names.OF_FUNCTIONS and "__device__" in body:
                self._device_words.add(defined)
            self.aligns |= name == "define" and bool({t.text for t in rest} & names.ALIGNMENTS)
            names.check_names(rest)

    def _check_pairs(self) -> None:
        for one, two in zip(self._tokens, self._tokens[1:], strict=False):
            if one.text == two.text == "[":
                named = [t.text for t in self._tokens[self._tokens.index(two) + 1 :]]
                inside = [text for text in named[: named.index("]")] if text != ","] if "]" in named else named
                if not set(inside) <= names.ATTRIBUTES:
                    raise Refused(one.line, f"the attribute {' '.join(inside)} is not supported")

    # --- declarations outside of functions: which kernels there are, and nothing of the host's ---

    def _declarations(self) -> None:
        scopes: list[str] = []  # the namespaces around
        tokens, begin, at = self._tokens, 0, 0
        while at < len(tokens):
            text = tokens[at].text
            if text == ";":
                self._declared(tokens[begin:at], scopes, has_body=False)
                begin = at + 1
            elif text == "}":
                if not scopes:
                    raise Refused(tokens[at].line, "a } that closes nothing")
                scopes.pop()
                begin = at + 1
            elif text == "{":
                words = [t.text for t in tokens[begin:at]]
                if "namespace" in words or (words[:1] == ["extern"] and len(words) == 2):
                    name = words[-1] if "namespace" in words and words[-1] != "namespace" else ""
                    scopes.append(name)
                    begin = at + 1
                else:
                    end = self._closing(at)
                    if member := next((t for t in tokens[at:end] if t.text == "__global__"), None):
                        raise Refused(
                            member.line, "a __global__ function has to stand outside of classes and functions"
                        )
                    if declarations.is_function(words):
                        self._declared(tokens[begin:at], scopes, has_body=True)
                        begin = end + 1
                    at = end
            at += 1

    def _closing(self, at: int) -> int:
        depth = 0
        for end in range(at, len(self._tokens)):
            depth += (self._tokens[end].text == "{") - (self._tokens[end].text == "}")
            if depth == 0:
                return end
        raise Refused(self._tokens[at].line, "a { that nothing closes")

    def _declared(self, tokens: list[Token], scopes: list[str], has_body: bool) -> None:
        words = [t.text for t in tokens]
        if not words:
            return
        if "__global__" in words:
            self._kernel(tokens, scopes, has_body)
        elif has_body and not set(words) & {"constexpr", *self._device_words}:
            name = words[words.index("(") - 1]
            how = "begin it with __global__ if it is a kernel, with __device__ if a kernel calls it, else leave it out"
            message = f"{name} is a function of the host, without execution space annotations: {how}"
            raise Refused(tokens[0].line, message)
        elif not has_body and declarations.is_host_variable(words, {"__constant__", *self._device_words}):
            how = "begin it with __constant__ or __device__"
            raise Refused(tokens[0].line, f"{' '.join(words[:4])} ... is a variable of the host: {how}")

    def _kernel(self, tokens: list[Token], scopes: list[str], has_body: bool) -> None:
        words = [t.text for t in tokens]
        opened = parameters_begin(words)
        if opened is None or "void" not in words[:opened]:
            raise Refused(tokens[0].line, "a __global__ function must have a void return type")
        closed = closing_parenthesis(words, opened)
        parameters = declarations.without_defaults(words[opened + 1 : closed])
        if "&" in parameters:
            how = "take the value, or a pointer"
            raise Refused(tokens[opened].line, f"a kernel's parameter that is a reference is not supported: {how}")
        name = words[max(words.index("void"), words.index("__global__")) + 1 : opened]
        if name[:1] == ["__launch_bounds__"]:  # it may stand behind the type
            name = name[closing_parenthesis(name, 1) + 1 :]
        if not name:
            raise Refused(tokens[0].line, "a __global__ function must have a name")
        is_template = words[:2] == ["template", "<"] and words[2] != ">"
        is_instance = words[0] == "template" and words[1] != "<"
        around = "".join(f"{scope}::" for scope in scopes if scope)
        plain, less, values = spelled(name).partition("<") if is_instance else (spelled(name), "", "")
        if "__launch_bounds__" in words[:opened]:
            head = declarations.closing_angle(words, 1) + 1 if is_template else 0
            self._bound(tokens, head, self._bounds.setdefault(around + plain, len(self._bounds)))
        if is_template or not (has_body or is_instance):
            return
        of = self._bounds.get(around + plain)
        bound = None if of is None else (of, f"::{around}rl_bound_{of}{less}{values}")
        number = len(self.kernels)
        of_type = f"{around}rl_kernel_type_{number}"
        self.kernels.append(_Kernel(around + spelled(name), of_type, tokens[0].line, bound))
        # Only a kernel that #if leaves in is there, and its type tells it from functions of the same name.
        kept = self.text[tokens[opened].end : tokens[closed].begin]
        listed = " ".join(parameters) if "=" in words[opened:closed] else kept
        there = (
            f'\n#define RL_THERE_{number}\n#line {tokens[0].line} "kernels"\n'  # its errors come again at the kernel
        )
        there += f"using rl_kernel_type_{number} = void({listed}\n);"
        at = tokens[0].begin
        self._edits.append((at, at, f'{there}\n#line {tokens[0].line} "source"\n'))

    def _bound(self, tokens: list[Token], head: int, number: int) -> None:
        """Keep the most threads a block that a kernel's __launch_bounds__ says, which may depend on its template."""
        at = [t.text for t in tokens].index("__launch_bounds__")
        closed = at + 1 + closing_parenthesis([t.text for t in tokens[at + 1 :]], 0)
        template = self.text[tokens[0].begin : tokens[head - 1].end] if head else ""
        inside = self.text[tokens[at + 1].end : tokens[closed].begin]
        if closed == at + 2:
            raise Refused(tokens[at].line, "__launch_bounds__ without a number of threads")
        kept = (
            f"\n#ifndef RL_BOUND_{number}\n#define RL_BOUND_{number}\n{template}\nconstexpr int rl_bound_{number} =\n"
        )
        kept += f'#line {tokens[at].line} "source"\nrl_first({inside}\n);\n#endif\n#line {tokens[0].line} "source"\n'
        self._edits.append((tokens[0].begin, tokens[0].begin, kept))

    # --- what C++ spells in another way ---

    def _rewrite(self) -> None:
        tokens = self._tokens
        for at, token in enumerate(tokens):
            self.aligns |= token.text in names.ALIGNMENTS and tokens[at - 1].text in ("struct", "class", "union")
            if token.text in ("int64_t", "uint64_t") and self._is_defined(at):
                self.own_integers.add(token.text)
            elif token.text == "__shared__":
                self._dynamic_shared(at)
            elif token.text == "static" and self._is_kept(at):
                raise Refused(token.line, "a static variable in a function is not supported: use a __device__ variable")
            elif token.text == "=" and self._is_zero_of_vectors(at):
                self._edits.append((tokens[at + 2].begin, tokens[at + 2].end, ""))
            elif token.text == "__constant__" or token.text in self._device_words:
                words = [t.text for t in tokens[at : at + 200]]
                new = "rl_device_function"
                if token.text == "__constant__" or declarations.is_variable(words):
                    is_const = declarations.is_constant([t.text for t in tokens[max(0, at - 2) : at]], words)
                    section = "rl_constant_variable" if token.text == "__constant__" else "rl_device_variable"
                    new = "" if is_const else section  # a constant lies in memory that nothing can write anyway
                    end = next((i for i, word in enumerate(words) if word in ("=", ";", "{", "[", ",")), len(words))
                    self.places.add((words[end - 1], section.removesuffix("_variable")))
                elif tokens[at - 1].text == "]":  # a lambda
                    new = ""
                self._edits.append((token.begin, token.end, new))

    def _is_defined(self, at: int) -> bool:
        """Whether `typedef ... name;` or `using name` defines the name at `at`."""
        before = [t.text for t in self._tokens[max(0, at - 5) : at]]
        after = [t.text for t in self._tokens[at + 1 : at + 2]]
        return before[-1:] == ["using"] or ("typedef" in before and after in ([";"], ["["]))

    def _is_zero_of_vectors(self, at: int) -> bool:
        """Whether `= {0}` at `at` is of an array of float4 or its like, which are no aggregates here: `{}` will do."""
        before = [t.text for t in self._tokens[max(0, at - 40) : at]]
        after = [t.text for t in self._tokens[at + 1 : at + 4]]
        begin = max((i + 1 for i, text in enumerate(before) if text in (";", "{", "}", "=")), default=0)
        zero = after[::2] == ["{", "}"] and re.fullmatch(r"0(\.0*f?)?", after[1])
        return bool(zero) and before[-1:] == ["]"] and any(map(names.VECTOR.fullmatch, before[begin:]))

    def _is_kept(self, at: int) -> bool:
        """Whether `static` in a function declares what lives between its calls; a function of a class is none."""
        depth, words = 0, [t.text for t in self._tokens[at + 1 : at + 200]]
        for token in self._tokens[:at]:
            depth += (token.text == "{") - (token.text == "}")
        end = words.index(";") if ";" in words else len(words)
        first = at
        while first > 0 and self._tokens[first - 1].text in names.BEFORE_STATIC:
            first -= 1
        before = {t.text for t in self._tokens[first:at]}
        return depth > 0 and not {"constexpr", "const", "__shared__", "__device__"} & {*before, *words[:end]}

    def _dynamic_shared(self, at: int) -> None:
        tokens = self._tokens
        near = [i for i in (at - 1, at + 1) if 0 <= i < len(tokens) and tokens[i].text == "extern"]
        if not near:
            self._static_shared(at)
            return
        end = next((i for i in range(at, len(tokens)) if tokens[i].text == ";"), None)
        inside = [t.text for t in tokens[at + 1 : end]]
        opened = inside.index("[") if "[" in inside else len(inside)  # the other dimensions may have a size
        if end is None or inside[opened : opened + 2] != ["[", "]"] or inside[-1] != "]" or "," in inside[opened:]:
            raise Refused(tokens[at].line, "extern __shared__ is not supported except as an array of unknown size")
        if inside[0] in ("__align__", "alignas"):  # the array is aligned to 256 bytes
            closed = at + 1 + closing_parenthesis(inside, 1)
            self._edits.append((tokens[at + 1].begin, tokens[closed].end, ""))
        self._edits.append((tokens[at].begin, tokens[at].end, "__attribute__((aligned(256)))"))
        self._edits.append((tokens[end].begin, tokens[end].begin, ' __asm__("rl_dynamic_shared")'))
        self.places.add((inside[opened - 1], "rl_dynamic_shared"))  # which g++ forgets within a template

    def _static_shared(self, at: int) -> None:
        """Give each variable zeros at first, because g++ makes arrays of classes without them while the kernel runs."""
        tokens, depth, begin = self._tokens, 0, at
        if "static" in [t.text for t in tokens[max(0, at - 2) : at + 3]]:
            self._edits.append((tokens[at].begin, tokens[at].end, ""))  # which says it once more
        if [t.text for t in tokens[at + 1 : at + 2]] == ["alignas"]:  # it stands before `static` in C++
            self._edits.append((tokens[at].begin, tokens[at].end, ""))
            at += 1 + closing_parenthesis([t.text for t in tokens[at + 1 :]], 1)
            self._edits.append((tokens[at].end, tokens[at].end, " static"))
        for i in range(at + 1, len(tokens)):
            text = tokens[i].text
            opens = text in "([{" or (text == "<" and tokens[i - 1].kind == "name" and depth == 0)
            depth += opens - (text in ")]}" or (text == ">" and depth > 0 and "]" not in text))
            if depth == 0 and text in ",;":
                words = [t.text for t in tokens[begin:i]]
                if "=" in words or words[-1] == "}":
                    raise Refused(
                        tokens[i].line, "an initial value of a __shared__ variable is not supported: assign it"
                    )
                self._edits.append((tokens[i].begin, tokens[i].begin, " = {}"))
                begin = i
                if text == ";":
                    return
