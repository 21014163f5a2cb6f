"""Answers to Lab 4 beside the reference: RIGHT ones must get full points, WRONG ones must lose some.

Keys are grade ids of solution cells; each entry is (what it is, the code that replaces the cell).
"""

from labs import lab4_layer_answers as layer

PARTS = (layer,)
RIGHT = {grade_id: answers for part in PARTS for grade_id, answers in part.RIGHT.items()}
WRONG = {grade_id: answers for part in PARTS for grade_id, answers in part.WRONG.items()}
# Wrong choices and wrong numbers, which a public test would have to give away.
ONLY_HIDDEN: dict[str, str] = {}
