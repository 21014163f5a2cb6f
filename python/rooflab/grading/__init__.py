"""Building, checking and grading labs.

Test cells run in the judge. Student code runs in another process, the worker. Work is counted in a third process, the
runtime, which repeats the worker's calls. CUDA kernels are compiled, run and counted in a fourth one. Only plain values
cross between them (`codec`, `wire`).

    lab/        a lab read from its parts (model) or from its student notebook (students); source -> student notebook
                (release); student notebook -> the master with the student's answers in their places, which is the one
                rule for what a student handed in (repair); which cells a question is graded with (builds_on); what
                students get (handout); what they see of a test cell that is folded (titles)
    jail/       a process for untrusted code (process), forked by forkserver or, where the code is trusted,
                started anew. sandbox says what it may use: enter and cgroup limit it, jail and seccomp isolate it,
                guard forbids in the interpreter. link talks to it, in the closed codec. folders are temporary, and end
                with their process
    follow/     a function followed through its source text, for questions that ask for loops
    measure/    what test cells can measure of student code, and how, in the process that holds the code (one_call).
                The virtual clock, the fake device (fake_run) and the memory behind a global_array (global_memory) stay
                with the test cell: a student's function can only ask them. What a notebook shows below a test cell is
                in verdicts
    replay/     a trace, which recorder writes in the worker, of calls that core_calls lists; replay repeats it where
                it is counted. without_counters takes the worker its counters, for answers that ask for a formula
    judge/      runs the test cells; worker holds the student's code, runtime counts, kernels runs CUDA C++; execute
                runs a solved notebook; verify checks that a lab grades right, wrong and missing answers as it should
    classroom/  which notebook belongs to whom (archives, submissions, platforms), who is missing (roster), all of them
                graded (batch), on a cluster too (slurm); what an instructor adds (marking); tables and pages (report);
                questions as tests

A room uses only rooms above it.
"""

import os

from rooflab.compiler import guards

# What looks on, as traces and counters do, changes at each call, and no compiled function's program depends on it.
guards.UNWATCHED.add(os.path.dirname(__file__))
