"""Answers to Lab 1 beside the reference: RIGHT ones must get full points, WRONG ones must lose some.

Keys are grade ids of solution cells; each entry is (what it is, the code that replaces the cell).
"""

from labs import lab1_attention_answers as attention
from labs import lab1_gelu_answers as gelu
from labs import lab1_gemm_answers as gemm
from labs import lab1_roofline_answers as roofline

RIGHT = gemm.RIGHT | roofline.RIGHT | gelu.RIGHT | attention.RIGHT
WRONG = gemm.WRONG | roofline.WRONG | gelu.WRONG | attention.WRONG
# Wrong choices and wrong numbers, which a public test would have to give away.
ONLY_HIDDEN = {
    "q1_2_choice": "a|b|d",
    "q1_2_gemv": "prediction of N squared",
    "q2_1_2": "AI of N/12",
    "q2_2_values": "limit of MACs|compute-bound|depends on N|the peak|share of the bandwidth|percent",
    "q4_3_3": "less arithmetic|tensor cores|a rougher tanh|ratio of the launches",
    "q5_1_2": "linear|doubles",
    "q5_1_3": "q, k and v|decode",
    "q5_2_1": "compute-bound|the intensity at L = 1024 for the limit|the ridge for the limit",
    "q5_2_2": "helps by a|helps by b|helps by c",
    "q5_2_3": "grows by a|grows by c|grows by d",
}
