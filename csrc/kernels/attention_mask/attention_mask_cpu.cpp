// attention_mask on the CPU: the reference.
#include <algorithm>

#include "kernels/attention/attention.h"
#include "kernels/attention_mask/attention_mask.h"

namespace rooflab::kernels {

void attention_mask_cpu_v0_reference(const AttentionMaskArgs& args, Queue&) {
  for (int64_t i = 0; i < args.q_length; ++i) {
    const KeyRange seen = visible_keys(i, args.q_length, args.kv_length, args.is_causal, args.window);
    bool* row = args.y + i * args.kv_length;
    std::fill(row, row + args.kv_length, false);
    std::fill(row + seen.begin, row + seen.end, true);
  }
}

}  // namespace rooflab::kernels
