// What a GPU's code was compiled for, which says what its kernels can do: a GPU may run code for an older one.
#pragma once

namespace rooflab {

struct CodeArchitecture {
  int number = 0;         // 80 for sm_80 or compute_80
  bool is_sm90a = false;  // has wgmma and all else that sm_90 and newer GPUs lack
};

}  // namespace rooflab
