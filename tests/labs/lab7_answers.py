"""Answers to Lab 7 beside the reference: RIGHT ones must get full points, WRONG ones must lose some.

Keys are grade ids of solution cells; each entry is (what it is, the code that replaces the cell). ONLY_HIDDEN names
wrong choices and wrong numbers, which a public test would have to give away.
"""

from labs import lab7_flash_answers as flash
from labs import lab7_histogram_answers as histogram
from labs import lab7_matmul_answers as matmul
from labs import lab7_own_answers as own
from labs import lab7_softmax_answers as softmax
from labs import lab7_sum_answers as sums
from labs import lab7_threads_answers as threads
from labs import lab7_transpose_answers as transpose

PARTS = (threads, transpose, sums, histogram, softmax, matmul, flash, own)
RIGHT = {grade_id: answers for part in PARTS for grade_id, answers in part.RIGHT.items()}
WRONG = {grade_id: answers for part in PARTS for grade_id, answers in part.WRONG.items()}
ONLY_HIDDEN = {grade_id: labels for part in PARTS for grade_id, labels in part.ONLY_HIDDEN.items()}
