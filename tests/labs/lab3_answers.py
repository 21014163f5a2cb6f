"""Answers to Lab 3 beside the reference: RIGHT ones must get full points, WRONG ones must lose some.

Keys are grade ids of solution cells; each entry is (what it is, the code that replaces the cell).
"""

from labs import lab3_backward_answers as backward
from labs import lab3_comparison_answers as comparison
from labs import lab3_compiled_answers as compiled
from labs import lab3_forward_answers as forward
from labs import lab3_half_answers as half
from labs import lab3_kernel_answers as kernel
from labs import lab3_naive_answers as naive
from labs import lab3_online_answers as online

PARTS = naive, compiled, online, forward, backward, kernel, half, comparison
RIGHT = {key: answers for part in PARTS for key, answers in part.RIGHT.items()}
WRONG = {key: answers for part in PARTS for key, answers in part.WRONG.items()}
LONG = ("q1_3", "q1_5", "q3", "q4", "q5", "q6", "b6_3", "q7_2")  # attention in loops of Python, and emulated kernels
# Wrong choices and wrong numbers, which a public test would have to give away.
ONLY_HIDDEN = {
    "q1_1": "always causal above 100 queries",
    "q1_2": "MB for MiB|four matrices|softmax keeps two|softmax needs one at the peak|three at the peak|"
    "flash keeps one",
    "q1_2_published": "96 of the account|MB for MiB|what is held over L squared|the same at L = 8192|the rest is a|"
    "the rest is b|the rest is d",
    "q1_5_values": "two matrices|chains alone|grows as L|both as with 24 GiB|eager at 4096|compiled at 8192|"
    "stays by a|stays by b|stays by d",
    "q4": "a quarter|nothing is saved",
    "q5": "two for 2.5|one invisible tile too many",
    "q7_3": "the ratio of flash|a guess|grows as L squared|more arithmetic|float64|the log-sum-exp",
}
