#pragma once

namespace simt {

// From here on this process can only compute, write to its open files, take memory, wait and end.
void confine();

}  // namespace simt
