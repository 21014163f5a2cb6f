"""The compiler's assembly: looked through for what a kernel may not do, and completed.

Each call of the runtime gets the number of its place, its site. The sites of a kernel are in the order of its code, so
that the lowest site is the lowest address. Here the floating-point operations of each basic block are counted too.
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass, field

from .tokens import Refused

# The libraries' functions that a kernel may call: they touch no memory.
_MATH = """
acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor lgamma log log10 log1p log2
logb nearbyint rint round sin sinh sqrt tan tanh tgamma trunc atan2 copysign fdim fmax fmin fmod hypot nextafter pow
remainder fma ldexp"""
_LIBRARY = frozenset([*_MATH.split(), *(f"{name}f" for name in _MATH.split()), "__popcountdi2"])
_CALL_FLOPS = {"fma": 2, "fmaf": 2, "fdim": 1, "fdimf": 1, "rl_fused": 2}
_RUNTIME = re.compile(
    r"rl_((thread|block)_[xyz]|(block|grid)_size|(from|to)_(half|bfloat16)|to_odd|to_integer"
    r"|fused|normcdf|fraction|special|exit|barrier|warp_operation|lane|lane_of_rank|by_rank|active|at_atomic|assertion_failed|trap|misaligned|printf|matrix_product)"
    r"|__tsan_(unaligned_|volatile_)?(read|write)(1|2|4|8|16)|__tsan_(read|write)_range"
    r"|__tsan_func_(entry|exit)|__sanitizer_cov_trace_pc|__ubsan_handle_(out_of_bounds|type_mismatch_v1|divrem_overflow|shift_out_of_bounds|float_cast_overflow)_abort"
    r"|__ubsan_handle_(builtin_unreachable|missing_return)"
)
_OF_TEMPLATE = re.compile(r'\s*\.section\s+\.(?:data|bss)[.a-z]*\.(_Z(?!Z|GV)\w+),"awG"')
_HIGHEST_BIT = re.compile(r"\s*(btcq\s+\$63|movabsq\s+\$-9223372036854775808, (%\w+)|xorq\s+(%\w+), %)")
_COPIES = {"memcpy": "rl_memcpy", "memmove": "rl_memcpy", "memset": "rl_memset"}
_MAX_SHARED = 48 << 10
_MAX_SHARED_OF_SOURCE = 480 << 10  # of all kernels together, which lie side by side
_PRODUCT_FLOPS = 2 * 16 * 16 * 16 // 32  # of a warp's matrix product, for each of its threads


@dataclass(frozen=True)
class _Processor:
    call: str
    jump: str
    indirect: re.Pattern[str]
    registers: tuple[str, ...]  # of the first four arguments, 32 bits wide
    set: str
    address: re.Pattern[str]  # of a symbol that an instruction takes
    flops: dict[str, int]
    refused: re.Pattern[str]


_X86 = _Processor(
    call="call",
    jump="jmp",
    indirect=re.compile(r"(?:call|jmp)\w*\s+\*"),
    registers=("%edi", "%esi", "%edx", "%ecx"),
    set="movl\t${number}, {register}",
    address=re.compile(r"([\w.$]+)(?:[+-]\d+)?(?:@GOT\w+)?\(%rip\)"),
    flops={f"{v}{name}{t}": 1 for v in ("", "v") for name in ("add", "sub", "mul") for t in ("ss", "sd")},
    # The last are of long double, whose FLOPs would not be counted.
    refused=re.compile(
        r"\s(syscall|sysenter|int|rdtscp?|hlt|wrfsbase|wrgsbase|fi?(?:add|subr?|mul|divr?)[slp]?)\b|%fs:|%gs:"
    ),
)
_ARM64 = _Processor(
    call="bl",
    jump="b",
    indirect=re.compile(r"(?:blr|br)\s"),
    registers=("w0", "w1", "w2", "w3"),
    set="mov\t{register}, {number}",
    address=re.compile(r":(?:got|got_lo12|lo12):([\w.$]+)"),
    flops={"fadd": 1, "fsub": 1, "fmul": 1, "fnmul": 1, "fmadd": 2, "fmsub": 2, "fnmadd": 2, "fnmsub": 2},
    refused=re.compile(r"\s(svc|hvc|smc|mrs|msr)\b"),
)
_PROCESSORS = {"x86_64": _X86, "AMD64": _X86, "aarch64": _ARM64, "arm64": _ARM64}


@dataclass
class Site:
    """A place in the code: the source's line (0: none), and a thread's FLOPs in the block or product there."""

    line: int
    flops: int = 0


@dataclass
class Assembly:
    """Checked assembly, its sites, and of each kernel its parameters as `rl_describe` wrote them and the bytes of its
    static shared memory.
    """

    text: str
    sites: list[Site] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    shared: list[int] = field(default_factory=list)


def complete(text: str, alignments: dict[str, list[tuple[str, int]]], places: frozenset[tuple[str, str]]) -> Assembly:
    """Check assembly and give its sites their numbers.

    Parameters
    ----------
    text : str
        Assembly.
    alignments : dict of str to list of (str, int)
        Of the structures that each function copies (`pieces.alignments`).
    places : frozenset of (str, str)
        Of variables that are no static shared memory: their names, and where each lies.

    Raises
    ------
    Refused
        At what a kernel may not do.
    """
    return _Reader(text, _PROCESSORS[platform.machine()], alignments, places).read()


_FUNCTION = re.compile(
    r"^;; Function (\S+) .*\n((?:(?!;; Function |  <bb ).*\n)*)((?:(?!;; Function ).*\n?)*)", re.MULTILINE
)
# From g++ 12 on the names of functions have numbers too.
_CALL = re.compile(
    r"\s+(?:(.*?) = )?(?!(?:rl_|__builtin_)\w+(?:D\.\d+)? \()([A-Za-z_~](?:(?! = ).)*?)(?:D\.\d+)? \((.*)\);.*"
)
_VALUE = re.compile(
    r"[\w.$]*?(D\.\d+)[\w.$]*|&.*|[\w.$]*_\d+\(D\)|\*_\d+\(D\)|[ -]*[\w.$+-]*"
)  # a variable, what is in no memory, or the function's own result, a pointer without a name


def check_calls(dump: str) -> None:
    """Check the compiler's own form of the functions (-fdump-tree-optimized-uid), because its hooks miss one kind of
    access: a structure that a call which is not inlined takes from memory by value, or returns to it. A thread's own
    variables may be taken and returned.

    Raises
    ------
    Refused
        At such a call.
    """
    for name, head, body in _FUNCTION.findall(dump):
        lines = [line for line in head.splitlines() if not re.search(r"\b(static|extern) ", line)]
        own = {found for line in lines for found in re.findall(r"D\.\d+", line)}
        for line in body.splitlines() if not name.startswith("rl_kernel_") else ():
            if (call := _CALL.fullmatch(_without_types(line))) is None:
                continue
            for operand in (call[1] or "", *call[3].split(", ")):
                value = _VALUE.fullmatch(operand)
                if value is None or (value[1] and value[1] not in own):
                    raise Refused(
                        0,
                        f"in {name}, a structure that goes between memory and {call[2]} by value is not supported, "
                        "because this function is not inlined: take it by reference (const&), or copy it from or to a "
                        "variable of the thread",
                    )


def _without_types(line: str) -> str:
    """A line without template arguments and texts, which hold commas too."""
    before = ""
    while line != before:
        before, line = line, re.sub(r'<[^<>]*>|"(?:\\.|[^"\\])*"', "", line)
    return line


class _Reader:
    def __init__(
        self,
        text: str,
        processor: _Processor,
        alignments: dict[str, list[tuple[str, int]]],
        places: frozenset[tuple[str, str]],
    ) -> None:
        self.lines = text.splitlines()
        self.processor = processor
        self.defined = set(re.findall(r"^\s*\.type\s+([\w.$]+), [@%]function", text, re.MULTILINE))
        self.named_here = set(re.findall(r"^(?:\s*\.(?:comm|weak|set)\s+)?([\w.$]+)(?=[:,\s])", text, re.MULTILINE))
        self.places = places
        self.elsewhere: dict[str, None] = {}  # symbols of arrays of dynamic shared memory that nothing here defines
        self.made = Assembly("")
        self.line = 0  # of the source
        self.source_file = self.section = ""
        self.shared_bytes = 0
        self.highest: set[str] = set()  # registers that hold the highest bit of 64
        self.block: Site | None = None
        self.static_shared = {name: int(size) for name, size in re.findall(r"^\s*\.comm\s+(\w+),(\d+)", text, re.M)}
        self.named: dict[str, set[str]] = {}  # functions and shared variables, by the function that names them
        self.function = ""
        self.alignments = {
            (name, is_number): [call for call in calls if _is_number(call[0]) == is_number]
            for name, calls in alignments.items()
            for is_number in (False, True)
        }

    def read(self) -> Assembly:
        out: list[str] = []
        skipping = False
        previous = "", ""
        for line in self.lines:
            words = line.split(None, 1)
            word = words[0] if words else ""
            if line.startswith("#APP"):
                self.refuse("inline assembly is not supported")
            if word in (".section", ".text", ".data", ".bss"):
                skipping, self.section = self.is_constructor(line), word
                if of_template := _OF_TEMPLATE.match(line):  # there g++ forgets the section that a variable has
                    line = f'\t.section\t{self.place(of_template[1]) or "rl_device"},"aw",@progbits'
            if skipping and word in (".section", ".align", ".p2align", ".quad", ".xword"):
                continue
            if word == ".file":
                self.file(line)
            elif word == ".loc":
                self.location(line)
            elif word in (".size", ".comm"):
                self.size(line)
            elif word and not word.startswith(".") and not word.endswith(":"):
                out += self.instruction(line, word, *previous)
                previous = (previous[1], line) if word != "movabsq" else previous
                continue
            elif word.endswith(":") and word[:-1] in self.defined:
                self.block = None  # the FLOPs of a function without basic blocks of its own are not counted
                self.function = word[:-1]
                self.highest.clear()
            out.append(line)
        out += [f"\t.set\t{symbol}, rl_dynamic_shared" for symbol in self.elsewhere]
        self.made.text = "\n".join(out) + "\n"
        self.made.parameters = _parameters(self.made.text)
        self.made.shared = [self.shared_of(f"rl_kernel_{number}") for number in range(len(self.made.parameters))]
        if max(self.made.shared, default=0) > _MAX_SHARED:
            most = max(self.made.shared)
            raise Refused(0, f"too much shared data: {most} bytes in one kernel, where a block can have {_MAX_SHARED}")
        return self.made

    def shared_of(self, kernel: str) -> int:
        """Bytes of the shared variables that a kernel names, itself or in the functions that it calls."""
        met: set[str] = set()
        waiting = [kernel]
        while waiting:
            named = self.named.get(waiting.pop(), set()) - met
            met |= named
            waiting += named & self.defined
        return sum(size for name, size in self.static_shared.items() if name in met)

    def refuse(self, what: str) -> None:
        raise Refused(self.line, what)

    def is_constructor(self, line: str) -> bool:
        if not re.search(r"\.(init|fini|preinit)_array|\.[cd]tors", line):
            return False
        if ".init_array.00099" not in line:  # the hooks' own, which has nothing to do
            self.refuse("a variable with a constructor is not supported: it would run before the kernel")
        return True

    def file(self, line: str) -> None:
        if match := re.match(r'\s*\.file (\d+) (?:"[^"]*" )?"source"', line):
            self.source_file = match[1]

    def location(self, line: str) -> None:
        number, at = line.split()[1:3]
        if number == self.source_file and at != "0":
            self.line = int(at)

    def size(self, line: str) -> None:
        name, size = line.split(None, 1)[1].split(",")[:2]
        if name.strip().startswith("_ZGV"):
            raise Refused(0, "a __shared__ variable whose constructor does something is not supported")
        if not size.strip().isdigit() or name.strip() == "rl_dynamic_shared":
            return
        is_of_file = re.search(r"[a-zA-Z_]I\w+E", name) and (self.section in (".data", ".bss") or ".comm" in line)
        if is_of_file and self.place(name.strip()):
            self.refuse("a static template of a variable, or one in a namespace without a name, is not supported")
        if int(size) > _MAX_SHARED:
            self.refuse(f"too much shared data: {int(size)} bytes in one array, where a block can have {_MAX_SHARED}")
        self.shared_bytes += int(size)
        if self.shared_bytes > _MAX_SHARED_OF_SOURCE:
            self.refuse(
                f"too much data: the variables of this source take more than {_MAX_SHARED_OF_SOURCE} bytes together; "
                "compile its kernels in several sources"
            )

    def instruction(self, line: str, word: str, earlier: str, previous: str) -> list[str]:
        processor = self.processor
        known = {name for name in re.findall(r"[\w.$]+", line) if name in self.defined or name in self.static_shared}
        self.named.setdefault(self.function, set()).update(known)
        for symbol in processor.address.findall(line):
            self.external(symbol)
        if processor.indirect.search(line):
            self.refuse("a call through a pointer to a function is not supported")
        if processor.refused.search(line):
            self.refuse(f"the instruction {word} is not supported")
        if word in (processor.call, processor.jump):
            target = line.split()[1].partition("@")[0]
            if word == processor.jump and target.startswith("."):
                return [line]
            return self.call(line, word, target)
        flops = processor.flops.get(word, 0)
        # Unsigned integers become floats with an addition that the source does not have.
        if self.block and flops and not ("cvtsi2s" in previous and line.split()[1][:-1] == line.split()[2]):
            self.block.flops += flops
        # And floats become unsigned integers of 64 bits with a subtraction of 2^63, whose highest bit is then set.
        if highest := _HIGHEST_BIT.match(line):
            if highest[2]:
                self.highest.add(highest[2])
            elif self.block and "cvtts" in previous and (highest[3] is None or highest[3] in self.highest):
                self.block.flops -= processor.flops.get(earlier.split()[0], 0)
        return [line]

    def external(self, symbol: str) -> None:
        """A symbol that an instruction takes. Within a template g++ makes one of the name of an array of dynamic shared
        memory.
        """
        if symbol in self.named_here or symbol in self.defined or symbol in _LIBRARY or _RUNTIME.fullmatch(symbol):
            return
        if self.place(symbol) != "rl_dynamic_shared":
            self.refuse(f"{symbol} is declared with extern, and defined nowhere")
        self.elsewhere[symbol] = None

    def place(self, symbol: str) -> str:
        """Where the variable of a symbol lies, by its name; "" where no name is known."""
        for name, place in sorted(self.places):
            if symbol == name or re.fullmatch(rf"_Z(?!Z)\w*{len(name)}{name}(?:I\w+|E)+", symbol):
                return place
        return ""

    def call(self, line: str, word: str, target: str) -> list[str]:
        if target == "__tsan_init":
            return []
        if target in _COPIES:
            return [self.site(3), line.replace(target, _COPIES[target], 1)]
        if target in self.defined:
            return [line]
        if self.block:
            self.block.flops += _CALL_FLOPS.get(target, 0)
        if target in _LIBRARY:
            return [line]
        if not _RUNTIME.fullmatch(target):
            self.refuse(f"a call of {target} is not supported")
        if of := re.fullmatch(r"__tsan_(?:read|write)(_range|16|8|4|2)", target):
            alignment = self.alignment(target)
            if of[1] == "_range":
                return [self.site(2), self.argument(3, alignment), line]
            if 0 < alignment < int(of[1]):  # a structure that the hook takes for one number
                size = self.argument(1, int(of[1]))
                return [size, self.site(2), self.argument(3, alignment), line.replace(of[1], "_range", 1)]
        if target == "__ubsan_handle_type_mismatch_v1_abort":
            return [self.site(2), line]
        if re.match(r"__tsan_(unaligned|volatile|read|write)", target):
            return [self.site(1), line]
        if target == "__sanitizer_cov_trace_pc":
            set_site = self.site(0)
            self.block = self.made.sites[-1]
            return [set_site, line]
        if re.fullmatch("rl_(barrier|warp_operation|active|at_atomic|assertion_failed|trap|misaligned)", target):
            return [self.site(0), line]
        if target == "rl_matrix_product":
            set_site = self.site(0)
            self.made.sites[-1].flops = _PRODUCT_FLOPS
            return [set_site, line]
        return [line]

    def alignment(self, hook: str) -> int:
        """Of the next structure that this function copies; 0 where the compiler's form of it has another order, which
        is told for what may be one number by itself.
        """
        calls = self.alignments.get((self.function, _is_number(hook)), [])
        if calls and hook.endswith(calls[0][0]):
            return calls.pop(0)[1]
        calls.clear()
        return 0

    def argument(self, place: int, number: int) -> str:
        """The instruction that passes a number as the argument at `place`."""
        return "\t" + self.processor.set.format(number=number, register=self.processor.registers[place])

    def site(self, place: int) -> str:
        """The instruction that passes a new site as the argument at `place`; what is there has no use any more."""
        number = len(self.made.sites)
        if number >= 1 << 16:
            self.refuse("a kernel as large as this is not supported")
        self.made.sites.append(Site(self.line))
        return self.argument(place, number)


def _is_number(hook: str) -> bool:
    """Whether the hook is that of numbers of up to 8 bytes."""
    return hook.endswith(("8", "4", "2"))


def _parameters(text: str) -> list[str]:
    """The texts that `RL_KERNEL` leaves, in the order of their numbers."""
    found = {}
    for number, data in re.findall(
        r"^_?rl_parameters_(\d+):\n((?:\s*\.(?:byte|string|asciz?|zero)\s.*\n)+)", text, re.M
    ):
        bytes_ = "".join(chr(int(byte)) for byte in re.findall(r"\.byte\s+(\d+)", data) if int(byte))
        found[int(number)] = bytes_ or "".join(re.findall(r'"([^"\\]*)["\\]', data))
    return [found[number] for number in sorted(found)]
