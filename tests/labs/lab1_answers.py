"""Answers to Lab 1 beside the reference: RIGHT ones must get full points, WRONG ones must lose some.

Keys are grade ids of solution cells; each entry is (what it is, the code that replaces the cell).
"""

from labs import lab1_attention_answers as attention
from labs import lab1_attention_cost_answers as attention_cost
from labs import lab1_compile_answers as compiling
from labs import lab1_gelu_answers as gelu
from labs import lab1_gemm_answers as gemm
from labs import lab1_layer_answers as layer
from labs import lab1_mlp_answers as mlp
from labs import lab1_roofline_answers as roofline

PARTS = (gemm, roofline, attention_cost, mlp, layer, gelu, compiling, attention)
RIGHT = {grade_id: answers for part in PARTS for grade_id, answers in part.RIGHT.items()}
WRONG = {grade_id: answers for part in PARTS for grade_id, answers in part.WRONG.items()}
# Attention that writes its scores, of many tokens; models that run whole.
LONG = ("q4_4_1", "b4_4_2", "q5_1_1", "q5_2_1", "q5_2_2", "q5_2_3")
# Wrong choices and wrong numbers, which a public test would have to give away.
ONLY_HIDDEN = {
    "q1_2_choice": "a|b|d",
    "q1_2_gemv": "prediction of N squared",
    "q2_1_2": "AI of N/12",
    "q2_2_values": "limit of MACs|compute-bound|depends on N|the peak|share of the bandwidth|percent",
    "q3_4_1_values": "decode of one sequence|decode as long as the cache|prefill of one sequence|swapped"
    "|prefill memory-bound|decode compute-bound|differ by a|differ by b|differ by d",
    "q3_4_2": "crossing at the ridge|crossing rounded down|crossing of the fp32 peak|grows by a|grows by c|grows by d",
    "q3_4_3": "bound of the fp32 peak|memory-bound on both|swapped|saturates by a|saturates by c|saturates by d",
    "q4_3_3": "less arithmetic|tensor cores|a rougher tanh|ratio of the launches",
    "b4_2": "one launch a range",
    "b4_2_values": "keys only|all weights of the layer|for eight texts|four key heads|in fp32|grows by a|grows by b"
    "|grows by d",
    "q4_4_1_mlp": "always the 270M model|in fp32|one text|one token",
    "q4_4_1_values": "swapped|only the GeLU|all fuse|stays by a|stays by c|stays by d",
    "b4_4_2_why": "helps by a|helps by b|helps by d",
    "q5_1_2": "linear|doubles",
    "q5_1_3": "q, k and v|decode",
    "q5_2_1": "compute-bound|the intensity at L = 1024 for the limit|the ridge for the limit",
    "q5_2_2": "helps by a|helps by b|helps by c",
    "q5_2_3": "grows by a|grows by c|grows by d",
}
