"""What a launch did: counts in total and by line, and findings."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from ...results import ReadableMixin, ResultMixin, Table, flat, page

if TYPE_CHECKING:
    from .findings import Finding
    from .warp_request import WarpRequest

_SECTOR = 32


@dataclass
class Access(ReadableMixin):
    """Loads, stores or atomic operations in one kind of memory. A request is one instruction of one warp.

    Attributes
    ----------
    requests, threads : int
        Instructions of warps, and the threads that took part in them.
    bytes : int
        What the threads asked for: 4 for each thread that loads a float.
    distinct_bytes : int
        The same, with what several threads of a request share counted once: what a GPU's counters call bytes.
    sectors : int
        Pieces of 32 bytes that the requests touch, in global memory. Atomic operations on one address go one after
        another, so their sector counts once for each.
    wavefronts, ideal_wavefronts : int
        Passes that the requests need in shared memory, and would need if no two threads met in a bank.
    """

    requests: int = 0
    threads: int = 0
    bytes: int = 0
    distinct_bytes: int = 0
    sectors: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0

    @property
    def sectors_per_request(self) -> float:
        """4.0 where a warp loads 32 floats in a row; 0.0 without a request."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def efficiency(self) -> float:
        """The part of the sectors' bytes that some thread wanted, 0 to 1; 1.0 without a request."""
        return self.distinct_bytes / (_SECTOR * self.sectors) if self.sectors else 1.0

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts beyond the ideal ones."""
        return self.wavefronts - self.ideal_wavefronts

    def add(self, other: Access) -> None:
        """Add the counts of another one to these.

        Parameters
        ----------
        other : Access
            It stays as it is.

        Examples
        --------
        >>> from rooflab.cuda import Access
        >>> access = Access(requests=1, threads=32)
        >>> access.add(Access(requests=2, threads=64))
        >>> access.requests, access.threads
        (3, 96)
        """
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass
class KernelCounts(ReadableMixin):
    """Counts of the program as it is written, before a GPU's compiler has changed it. There is no time among them.

    An H100 counts the same for 120 small kernels that ``ptxas -O0`` compiled (tests/golden/hardware.json). An optimised
    build asks for less where it joins neighbouring loads into wider ones, keeps what it has loaded in a register, or
    adds to one address once a warp. It asks for more where it unrolls a loop that lanes leave at different times.
    Functions such as ``expf`` and divisions are FLOPs there, and none here.

    They are the same by g++ 11 and 12. clang is not taken: clang 14 and 16 make one store of two equal ones in both
    branches of an if, so they count fewer requests in 2 of these kernels. In the others they count the same.

    Attributes
    ----------
    global_loads, global_stores, global_atomics, shared_loads, shared_stores, shared_atomics : Access
        By memory and kind.
    barriers : int
        ``__syncthreads`` and its like, once for each warp that arrives.
    block_barriers : int
        The same, once for each block. Not known of a line.
    warp_operations : int
        Shuffles, votes, ``__syncwarp`` and matrix products, once for each warp.
    flops : int
        Additions, subtractions and multiplications of floats; a fused multiply-add is two. Divisions, roots and
        functions are not in it, nor what an atomic operation adds. They are counted when g++ has simplified each
        expression, as nvcc does too: of constants is made one (``2.0f * 3.0f * x`` is 1), what stands there twice is
        computed once (``(x + w) * (x + w)`` is 2), ``x * 1.0f`` and what nobody uses are 0, and a division by a
        constant power of two is a multiplication. Sums keep their order. What a loop repeats counts each time, where
        nvcc may compute once what is the same each time, and of two branches only the one that is taken.
    tensor_flops : int
        Multiplications and additions of matrix products (``nvcuda::wmma``).
    branches, branch_threads : int
        Steps of warps from one basic block to the next, and the threads that took part.
    """

    global_loads: Access = field(default_factory=Access)
    global_stores: Access = field(default_factory=Access)
    global_atomics: Access = field(default_factory=Access)
    shared_loads: Access = field(default_factory=Access)
    shared_stores: Access = field(default_factory=Access)
    shared_atomics: Access = field(default_factory=Access)
    barriers: int = 0
    block_barriers: int = 0
    warp_operations: int = 0
    flops: int = 0
    tensor_flops: int = 0
    branches: int = 0
    branch_threads: int = 0

    @property
    def active_threads(self) -> float:
        """Threads of a warp that go together, on average over its steps: 32 without divergence, 0.0 without a step."""
        return self.branch_threads / self.branches if self.branches else 0.0

    @property
    def bytes_read(self) -> int:
        """Bytes that threads asked of global memory."""
        return self.global_loads.bytes + self.global_atomics.bytes

    @property
    def bytes_written(self) -> int:
        """Bytes that threads stored to global memory."""
        return self.global_stores.bytes + self.global_atomics.bytes

    @property
    def intensity(self) -> float:
        """FLOPs for each byte of the sectors that the requests touch, 0.0 without any.

        Caches answer some of the requests, so the bytes that memory delivers can be fewer: this is a lower bound of
        the arithmetic intensity, and a place on a roofline (`rooflab.plots.plot_roofline`).
        """
        sectors = sum(each.sectors for each in (self.global_loads, self.global_stores, self.global_atomics))
        return (self.flops + self.tensor_flops) / (_SECTOR * sectors) if sectors else 0.0

    @property
    def bank_conflicts(self) -> int:
        """Of loads, stores and atomic operations in shared memory."""
        return sum(each.bank_conflicts for each in (self.shared_loads, self.shared_stores, self.shared_atomics))

    def add(self, other: KernelCounts) -> None:
        """Add the counts of another one to these.

        Parameters
        ----------
        other : KernelCounts
            It stays as it is.

        Examples
        --------
        >>> from rooflab.cuda import KernelCounts
        >>> counts = KernelCounts()
        >>> counts.add(KernelCounts(flops=64))
        >>> counts.flops
        64
        """
        for each in fields(self):
            mine, its = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, Access):
                mine.add(its)
            else:
                setattr(self, each.name, mine + its)

    def rows(self) -> list[tuple[str, str]]:
        """What there is to show.

        Returns
        -------
        list of (str, str)
            What was counted, and the figure; zeros are left out.

        Examples
        --------
        >>> from rooflab.cuda import KernelCounts
        >>> KernelCounts(flops=2048).rows()
        [('flops', '2,048')]
        """
        shown: list[tuple[str, str]] = []
        for each in fields(self):
            value = getattr(self, each.name)
            name = each.name.replace("_", " ")
            if isinstance(value, Access):
                if value.requests:
                    shown += [(f"{name}: {what}", figure) for what, figure in _of_access(value)]
            elif value and each.name not in ("branches", "branch_threads"):
                shown.append((name, f"{value:,}"))
        if self.branches:
            shown.append(("threads that go together", f"{self.active_threads:.1f} of 32"))
        return shown


@dataclass
class Launch(ResultMixin):
    """What one launch did.

    Attributes
    ----------
    kernel : str
    grid, block : tuple of three int
    mode : str
        "functional", "check" or "count".
    counts : KernelCounts
        All zero except in mode "count".
    lines : dict of int to KernelCounts
        The same by line of the source.
    requests : list of WarpRequest
        Who accesses what: of each load, store and atomic operation in the source the request that needed the most
        sectors or wavefronts, in mode "count". `rooflab.plots.plot_warp_requests` draws them.
    findings : list of Finding
        What is wrong with the kernel; not looked for in mode "functional".
    blocks : int
        How many blocks were counted: all of the grid, or those that ``blocks=`` asked for.
    source : str
        "simt": counted by running the program as it is written on the CPU.
        "hardware": read from a GPU's counters, which are those of the optimised build. They have requests, sectors,
        wavefronts and bank conflicts, barriers, FLOPs in float32, and the distinct bytes of global loads and stores,
        which stand for all bytes. What else there is stays 0, and there are no lines and no findings.
    text : str
        The kernel's CUDA C++.
    wrote_nothing : bool
        Whether no thread wrote to global memory, though an array was there to be written. It is a finding too where the
        kernel has no line that would, and none that prints, asserts or traps.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    mode: str
    text: str
    counts: KernelCounts = field(default_factory=KernelCounts)
    lines: dict[int, KernelCounts] = field(default_factory=dict)
    requests: list[WarpRequest] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    blocks: int = 0
    source: str = "simt"
    wrote_nothing: bool = False

    def listing(self) -> str:
        """The source with what each line did beside it.

        Returns
        -------
        str
            A line for each line of the source, with its number.

        Examples
        --------
        >>> print(launch.listing())  # doctest: +SKIP
        """
        return "\n".join(
            f"{number:>4}  {text:<72}{'  ' + note if note else ''}".rstrip() for number, text, note in self._annotated()
        )

    def __str__(self) -> str:
        head = f"{self.kernel}: {_shape(self.grid)} blocks of {_shape(self.block)} threads, mode {self.mode}"
        rows = [f"  {line}" for line in Table(("", ""), self.counts.rows()).lines()[1:]]
        return "\n".join([head, *(f"  {finding}" for finding in self.findings), *rows, *self._notes()])

    __repr__ = __str__

    def _figures(self) -> Table:
        shape = {"kernel": self.kernel, "grid": list(self.grid), "block": list(self.block), "mode": self.mode}
        return Table.of([shape | {"findings": len(self.findings)} | flat(self.counts.to_dict())])

    def _table(self) -> Table:
        return Table(["count", ""], self.counts.rows(), self.kernel, " ".join(self._notes()))

    def _repr_html_(self) -> str:
        listing = self._annotated() if self.lines else []
        counts = self._table().to_html()
        return page(__package__, "launch.html", findings=self.findings, counts=counts, listing=listing)

    def _notes(self) -> list[str]:
        total = self.grid[0] * self.grid[1] * self.grid[2]
        nothing = ["No thread wrote to global memory."] if self.wrote_nothing and not self.findings else []
        if self.mode != "count":
            return nothing
        part = [f"Of {self.blocks:,} of {total:,} blocks."] if self.blocks < total else []
        what = "the optimised build, by the GPU" if self.source == "hardware" else "the program as it is written"
        return [*nothing, *part, f"Counts of {what}; there is no time among them."]

    def _annotated(self) -> list[tuple[int, str, str]]:
        rows = []
        for number, text in enumerate(self.text.splitlines(), 1):
            counts = self.lines.get(number)
            notes = [f"{what} {figure}" for what, figure in counts.rows()] if counts else []
            notes += [f"<- {finding.what}" for finding in self.findings if finding.line == number]
            rows.append((number, text, "; ".join(notes)))
        return rows


def _of_access(access: Access) -> list[tuple[str, str]]:
    shown = [("requests", f"{access.requests:,}"), ("bytes", f"{access.bytes:,}")]
    if access.sectors:
        shown += [("sectors", f"{access.sectors:,}"), ("sectors per request", f"{access.sectors_per_request:.2f}")]
        shown += [("efficiency", f"{access.efficiency:.1%}")]
    if access.wavefronts:
        shown += [("wavefronts", f"{access.wavefronts:,}"), ("bank conflicts", f"{access.bank_conflicts:,}")]
    return shown


def _shape(three: tuple[int, int, int]) -> str:
    return " x ".join(str(number) for number in three[: 3 if three[2] > 1 else 2 if three[1] > 1 else 1])
