"""Building, checking and grading labs.

A test cell runs in the judge; student code runs in a worker, another process. What is counted is counted in a third
one, the runtime, which makes the worker's calls again. Only plain values cross (`codec`).

    lab.py       a lab read from its parts, or from its student notebook
    release.py   source of a lab -> student notebook, with a leak check
    verify.py    a lab's own answers graded: right ones, wrong ones, and none
    handout.py   what students get: notebooks, instructions, the package without answers
    repair.py    student notebook -> the master with the student's answers in their places
    judge.py     runs the test cells; link.py is its end of the line to worker.py
    process.py   a worker's process: forked into the jail by forkserver.py, which namespaces.py lets in, or a new one
                 where the code is trusted; start.py finds rooflab
    sandbox.py   what it may use: enter.py and cgroup.py limit it, jail.py and seccomp.py isolate it
    cells.py     magics, shell lines and await in a student's cells
    guard.py     what the worker forbids student code inside the interpreter
    measure.py   what test cells measure of student code; measurements.py is what they get
    measurers.py how each is measured, in the process that holds the code
    clock.py     the virtual clock; fake_run.py is the fake device, accesses.py the memory behind a global_array.py.
                 They stay with the test cell, and a student's function asks them
    runtime.py   what counts, in a process without student code: replay.py makes again there what recorder.py wrote down
                 in the worker, as a trace.py of calls that natives.py lists; modes.py is what a trace may leave open
    follow.py    a function followed from its text, for questions that ask for loops; allowed.py is what it may use
    report.py    the table, the HTML and the JSON of a grade, and Gradescope's
    plain.py     a student's text as it may stand in a terminal or a table
    submissions.py, batch.py   a class: whose notebook is whose, and all of them graded
    slurm.py                   the same on a cluster
    marking.py                 what an instructor adds: points by hand, and who was late
    pytest_plugin.py           a notebook's questions as tests
"""
