"""Answers to Lab 6 beside the reference: RIGHT ones must get full points, WRONG ones must lose some.

Keys are grade ids of solution cells; each entry is (what it is, the code that replaces the cell).
"""

from labs import lab6_attention_answers as attention
from labs import lab6_recall_answers as recall
from labs import lab6_training_answers as training

RIGHT = attention.RIGHT | recall.RIGHT | training.RIGHT
WRONG = attention.WRONG | recall.WRONG | training.WRONG
LONG = ("q2_1", "q2_4", "q3_1", "b3_2")  # these train models, for many seconds each
# Wrong choices and wrong numbers, which a public test would have to give away.
ONLY_HIDDEN = {
    "q1_1_choice": "needed by a|needed by c|needed by d",
    "q2_2": "1/32 for the tokens|bits|1/7 for the seen|all values for the seen|1/8 for the last|the harmonic sum",
    "q2_5": "1/24|1/8, not measured|the matching key|all values together|fails by a|fails by b|fails by d",
    "q3_1": "one head zeroed",
}
