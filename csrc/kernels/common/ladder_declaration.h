// So that the header of an op can name its ladder, which kernels/common/ladder.h defines.
#pragma once

namespace rooflab::kernels {

template <class Args>
class Ladder;

}  // namespace rooflab::kernels
