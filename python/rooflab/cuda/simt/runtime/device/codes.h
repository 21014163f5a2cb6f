// What the device's headers tell the runner's functions.
#pragma once

enum rl_vote { rl_vote_all, rl_vote_any, rl_vote_count };
enum rl_warp {
  rl_warp_sync,
  rl_warp_shuffle,
  rl_warp_shuffle_up,
  rl_warp_shuffle_down,
  rl_warp_shuffle_xor,
  rl_warp_ballot,
  rl_warp_all,
  rl_warp_any,
  rl_warp_match_any,
  rl_warp_match_all,
  rl_warp_add,
  rl_warp_min,
  rl_warp_max,
  rl_warp_and,
  rl_warp_or,
  rl_warp_xor,
};
enum rl_atomic {
  rl_atomic_add,
  rl_atomic_subtract,
  rl_atomic_min,
  rl_atomic_max,
  rl_atomic_exchange,
  rl_atomic_compare,
  rl_atomic_and,
  rl_atomic_or,
  rl_atomic_xor,
  rl_atomic_increment,
  rl_atomic_decrement,
};
enum rl_type {
  rl_type_int,
  rl_type_unsigned,
  rl_type_long,
  rl_type_unsigned_long,
  rl_type_float,
  rl_type_double,
  rl_type_half,
  rl_type_bfloat16,
  rl_type_half2,
  rl_type_bfloat162,
  rl_type_bits16,
};
inline int rl_log_size(rl_type type) {
  switch (type) {
    case rl_type_half:
    case rl_type_bfloat16:
    case rl_type_bits16: return 1;
    case rl_type_long:
    case rl_type_unsigned_long:
    case rl_type_double: return 3;
    default: return 2;
  }
}

enum rl_function {
  rl_function_sinpi,
  rl_function_cospi,
  rl_function_norm,
  rl_function_erfinv,
  rl_function_erfcinv,
  rl_function_normcdfinv,
  rl_function_fraction,  // of frexp, and its exponent
  rl_function_exponent,
  rl_function_ilogb,
};

enum rl_kind { rl_integer, rl_real, rl_pointer };
struct rl_value {  // an argument of printf
  unsigned long long bits;
  rl_kind kind;
};

// d = a b + c of a warp: where a thread's elements of each are.
struct rl_product {
  const void *a, *b, *c;
  void* d;
  int m, n, k;
  int is_brain, is_half;  // a and b are __nv_bfloat16; c and d are half
  int a_by_columns, b_by_columns;
};
