"""Answers to Lab 2 beside the reference: RIGHT ones must get full points, WRONG ones must lose some.

Keys are grade ids of solution cells; each entry is (what it is, the code that replaces the cell). ONLY_HIDDEN names
wrong choices and wrong numbers, which a public test would have to give away.
"""

from labs import lab2_benchmark_answers as benchmark
from labs import lab2_bonus_answers as bonus
from labs import lab2_compile_answers as compiler
from labs import lab2_memory_answers as memory
from labs import lab2_models_answers as models
from labs import lab2_precision_answers as precision
from labs import lab2_profile_answers as profile

PARTS = (models, benchmark, profile, precision, memory, compiler, bonus)
RIGHT = {grade_id: answers for part in PARTS for grade_id, answers in part.RIGHT.items()}
WRONG = {grade_id: answers for part in PARTS for grade_id, answers in part.WRONG.items()}
LONG = ("q1_1_2", "q1_1_6b", "b1_1_4d", "b1_1_6c", "b1_3a", "b1_3b")  # models of several sizes, or many steps
ONLY_HIDDEN = {grade_id: labels for part in PARTS for grade_id, labels in part.ONLY_HIDDEN.items()}
