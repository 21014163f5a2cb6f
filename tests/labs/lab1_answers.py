"""Answers to Lab 1 beside the reference: RIGHT ones must get full points, WRONG ones must lose some.

Keys are grade ids of solution cells; each entry is (what it is, the code that replaces the cell).
"""

from labs import lab1_attention_answers as attention
from labs import lab1_gelu_answers as gelu
from labs import lab1_gemm_answers as gemm
from labs import lab1_roofline_answers as roofline

RIGHT = gemm.RIGHT | roofline.RIGHT | gelu.RIGHT | attention.RIGHT
WRONG = gemm.WRONG | roofline.WRONG | gelu.WRONG | attention.WRONG
