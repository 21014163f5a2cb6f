"""Answers to Lab 5 beside the reference: RIGHT ones must get full points, WRONG ones must lose some.

Keys are grade ids of solution cells; each entry is (what it is, the code that replaces the cell). ONLY_HIDDEN names
wrong choices and wrong numbers, which a public test would have to give away.
"""

from labs import lab5_access_answers as access
from labs import lab5_gelu_answers as gelu
from labs import lab5_machine_answers as machine
from labs import lab5_measuring_answers as measuring
from labs import lab5_recomputation_answers as recomputation
from labs import lab5_resources_answers as resources
from labs import lab5_tricks_answers as tricks
from labs import lab5_warmup_answers as warmup
from labs import lab5_waves_answers as waves

PARTS = (warmup, resources, machine, tricks, access, recomputation, waves, measuring, gelu)
RIGHT = {grade_id: answers for part in PARTS for grade_id, answers in part.RIGHT.items()}
WRONG = {grade_id: answers for part in PARTS for grade_id, answers in part.WRONG.items()}
ONLY_HIDDEN = {grade_id: labels for part in PARTS for grade_id, labels in part.ONLY_HIDDEN.items()}
