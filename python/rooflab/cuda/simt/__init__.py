"""CUDA C++ on the CPU: compiled by the machine's C++ compiler, run thread by thread, checked and counted.

What a count is
---------------
Counts are those of the program as it is written, and the same at each run. A GPU's compiler may do less: it merges
loads of neighbouring places of shared memory, and it replaces branches by conditions. Requests, sectors and bytes of
global memory, atomic operations and barriers are what a GPU shows too. Nothing here is a time.

How it works
------------
`front_end` turns CUDA C++ into C++ and refuses, by name, what is not on the lists of `names`. g++ compiles that with
a call before each load and store (``-fsanitize=thread``) and at each basic block; `assembly` looks through what comes
out and numbers these calls. `process` starts two programs for a launch (`runtime`): the runner, in which each CUDA
thread is a fiber with a stack of its own, and the accountant. The runner checks an address before it is used and
writes down what was done, in memory that both share. The accountant puts the 32 threads of a warp together again,
lowest place in the code first, and adds up. The kernel is never in the accountant's process, so there is no total
that it could change.

Limits
------
Threads of a block run one after another up to their next barrier, and blocks one after another. So a race is found but
seldom seen in the values; a missing ``__threadfence`` is not found; a thread that waits for another block waits for
ever. In global memory a race is not found among threads that write one place by one statement, as all of them mostly
write the same, at volatile accesses, and between two warps or blocks that both made an atomic operation or a volatile
access of global memory, which may order them. A load of a place that its thread then swaps by ``atomicCAS`` is no race
with atomic operations there, if between the two the thread writes nothing there, waits at no barrier of the block, and
passes fewer than 65,536 accesses and basic blocks. A ``__device__`` variable has its initial value at each launch,
where a GPU keeps it between launches. A local variable that nobody set is no finding; from g++ 12 on it mostly holds a
wild value, but not where a goto or another case of its switch jumps over its line. An index out of bounds of
an array of global memory is found at least as far out as the array is long, and less far in arrays of several GiB and
where files have to be short (``ulimit -f``), because these are closer together. An index beyond one ``__shared__``
variable is found where it leaves an array, not where a pointer goes from one variable into the next. A thread that
writes below a local array can reach its own other variables, but no other memory and no return address.
"""
