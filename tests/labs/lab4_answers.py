"""Answers to Lab 4 beside the reference: RIGHT ones must get full points, WRONG ones must lose some.

Keys are grade ids of solution cells; each entry is (what it is, the code that replaces the cell). ONLY_HIDDEN names
wrong choices and wrong numbers, which a public test would have to give away.
"""

from labs import lab4_cache_answers as cache
from labs import lab4_gpt2_answers as gpt2
from labs import lab4_heads_answers as heads
from labs import lab4_layer_answers as layer
from labs import lab4_runtime_answers as runtime
from labs import lab4_speculative_answers as speculative

PARTS = (layer, heads, gpt2, cache, speculative, runtime)
RIGHT = {grade_id: answers for part in PARTS for grade_id, answers in part.RIGHT.items()}
WRONG = {grade_id: answers for part in PARTS for grade_id, answers in part.WRONG.items()}
ONLY_HIDDEN = {grade_id: labels for part in PARTS for grade_id, labels in part.ONLY_HIDDEN.items()}
