// The calls of a trace as something to run again: chains of elementwise calls, with reductions at their end, as one
// `fused`, the rest as it was recorded. Which calls form a chain is the caller's choice (rooflab/compiler/plan.py).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/fused.h"
#include "ops/trace.h"

namespace rooflab {

class Program {
 public:
  // Calls of the trace, by their numbers. More than one, or one that `results` are named for, is a chain: its calls are
  // elementwise and of one shape; then come reductions of that shape's last dimensions, and elementwise calls on what
  // these make. `results` are the storages that others read.
  struct Step {
    std::vector<int> calls;
    std::vector<int> results;
  };

  // `inputs`: what run() is given, as the trace knows it. `variant`: the rung of `fused`; the fastest when empty.
  Program(const Trace& trace, std::vector<View> inputs, const std::vector<Step>& steps, std::vector<View> results,
          const std::string& variant);

  // Results on the inputs' device; nothing is recorded for gradients.
  Tensors run(const Tensors& inputs) const;

  // The CUDA C++ of each chain in order, for threads that make `width` neighbours.
  std::vector<std::string> cuda_sources(int width) const;

 private:
  struct Planned {
    TracedCall traced;
    std::unique_ptr<FusedOp> fused;  // null: the call as it was recorded
    std::vector<int> dead;           // storages that nothing reads later
  };
  struct Slot;

  void add_chain(const Trace& trace, const Step& step, const std::map<int, Scalar>& constants,
                 const std::string& variant);
  void find_last_uses();

  std::vector<View> inputs_, results_;
  std::vector<bool> any_strides_;  // of inputs that only chains read, and whole
  std::vector<Planned> steps_;
  std::vector<int64_t> bytes_;  // of each storage of the trace
};

// How many instructions a traced call has in a chain; 0 when it cannot be part of one.
int chain_instructions(const TracedCall& traced);
// How many of the last dimensions a traced call reduces, as a chain may; 0 when it is no such reduction.
int reduced_dims(const TracedCall& traced);
// Whether it fills a tensor with a number, which a chain then takes in place of the tensor.
bool is_constant(const TracedCall& traced);

}  // namespace rooflab
