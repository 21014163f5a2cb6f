"""Building, checking and grading labs.

Test cells run in the judge. Student code runs in another process, the worker. Work is counted in a third process, the
runtime, which repeats the worker's calls. Only plain values cross between them (`codec`).

    lab.py       a lab read from its parts, or from its student notebook
    release.py   source of a lab -> student notebook, with a leak check
    verify.py    checks that a lab grades right, wrong and missing answers as it should
    handout.py   what students get: notebooks, instructions, the package without answers
    repair.py    student notebook -> the master with the student's answers in their places
    judge.py     runs the test cells; link.py is its end of the connection to worker.py
    builds_on.py which of the student's cells are run for a question
    process.py   a worker's process: forked by forkserver.py, which enters the jail with namespaces.py, or a new process
                 where the code is trusted; start.py finds rooflab
    sandbox.py   what a worker may use: enter.py and cgroup.py limit it, jail.py and seccomp.py isolate it
    cells.py     magics, shell lines and await in a student's cells
    guard.py     what student code may not do inside the worker's interpreter
    measure.py   what test cells can measure of student code; measurements.py holds the results
    measurers.py how each is measured, in the process that holds the code
    clock.py     the virtual clock; fake_run.py is the fake device, accesses.py the memory behind a global_array.py.
                 All three stay with the test cell, and a student's function can only ask them
    runtime.py   counts, in a process without student code: there replay.py repeats the trace (trace.py) that
                 recorder.py wrote in the worker, of calls that natives.py lists; modes.py keeps what a trace may leave
                 open
    follow.py    follows a function through its source text, for questions that ask for loops; allowed.py lists what the
                 function may use
    report.py    the table, the HTML and the JSON of a grade, and Gradescope's
    plain.py     makes a student's text safe for a terminal or a table
    submissions.py, batch.py   a class: which notebook belongs to whom, and how all of them are graded
    slurm.py                   the same on a cluster
    marking.py                 what an instructor adds: points by hand, and who was late
    pytest_plugin.py           a notebook's questions as tests
"""

import os

from rooflab.compiler import guards

# What looks on, as traces and counters do, changes at each call, and no compiled function's program depends on it.
guards.UNWATCHED.add(os.path.dirname(__file__))
