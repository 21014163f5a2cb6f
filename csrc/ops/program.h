// The calls of a trace in a form that can be run again: chains of elementwise calls and of reductions of their rows
// become one `fused` each, and all other calls stay as recorded. The caller chooses which calls form a chain
// (rooflab/compiler/plan.py).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/fused.h"
#include "ops/trace.h"

namespace rooflab {

class Program {
 public:
  // Calls of the trace, by number. Several calls, or one for which `results` are named, form a chain: elementwise calls
  // of one shape, reductions of that shape's last dimensions, elementwise calls on the rows' numbers that these
  // produce, and sums over all other dimensions. `results` are the storages that others read.
  struct Step {
    std::vector<int> calls;
    std::vector<int> results;
  };

  // `inputs`: the inputs of run(), as the trace knows them. `variant`: the rung of `fused`; the fastest one if empty.
  Program(const Trace& trace, std::vector<View> inputs, const std::vector<Step>& steps, std::vector<View> results,
          const std::string& variant);

  // The results are on the inputs' device; nothing is recorded for gradients. Each tensor is dropped after its last
  // use, inputs too, and `take` gets each result as soon as no step needs it any more.
  using Take = std::function<void(int result, Tensor)>;
  void run(Tensors inputs, const Take& take) const;
  Tensors run(Tensors inputs) const;

  // Makes the gradients of inputs[targets[0]], inputs[targets[1]] and so on from what was saved and the gradients of
  // all results, or of one.
  struct Backward {
    std::shared_ptr<const Program> program;
    std::vector<int> targets;
  };
  using BackwardOf = std::function<Backward(int result)>;
  // Makes `results` those of a node whose backward runs `whole` if each has a gradient. Otherwise it adds up what
  // `alone`, which is not called where there is one result, makes for each that has one.
  static void record(const std::string& op, Tensors& results, const Tensors& inputs, const Tensors& saved,
                     Backward whole, BackwardOf alone);

  // The CUDA C++ of each chain, in order.
  std::vector<std::string> cuda_sources(const kernels::FusedTiling& tiling) const;

 private:
  struct Planned {
    TracedCall traced;
    std::shared_ptr<const FusedChain> fused;  // null: the call as it was recorded
    std::vector<int> dead{};                  // storages that nothing reads after this step
    std::vector<int> done{};                  // results that lie in them
    bool writes_over = false;                 // whether its result may take the memory of its input 1, which dies here
  };
  struct Slot;

  void add_chain(const Trace& trace, const Step& step, const std::map<int, Scalar>& constants,
                 const std::string& variant);
  void find_last_uses();
  static bool is_free(const Slot& slot, const Tensor& logits);
  void run_step(const Planned& step, std::vector<Slot>& slots, Device device) const;

  std::vector<View> inputs_, results_;
  std::vector<bool> any_strides_;  // of inputs that only chains read, and as a whole
  std::vector<Planned> steps_;
  std::vector<int> untouched_;  // results that no step reads or writes: inputs
  std::vector<int64_t> bytes_;  // of each storage of the trace
};

// How many instructions a traced call becomes in a chain; 0 if it cannot be part of one.
int chain_instructions(const TracedCall& traced);
// How many of its operands are numbers there.
int chain_numbers(const TracedCall& traced);
// How many of the last dimensions a traced call reduces, if it is a reduction that a chain can contain; otherwise 0.
int reduced_dims(const TracedCall& traced);
// How many of the first dimensions a traced call adds up, if it is a sum that a chain can contain as one of columns;
// otherwise 0.
int summed_dims(const TracedCall& traced);
// Whether a traced call looks for a number out of range: an index, a class or a divisor of 0.
bool looks(const TracedCall& traced);
// Whether a view shows its elements in the order of memory, without gaps.
bool is_in_order(const View& view);
// Whether two views show the same elements in the same order, whatever their shapes.
bool shows_same(const View& x, const View& y);
// Whether a view, broadcast to `shape`, shows for each element the number that `y`, contiguous, has for its row. The
// last `reduced_dims` of the shape make up a row.
bool shows_rows(const View& x, const View& y, const Shape& shape, int reduced_dims);
// Whether it fills a tensor with a number, which a chain then uses in place of the tensor.
bool is_constant(const TracedCall& traced);

}  // namespace rooflab
