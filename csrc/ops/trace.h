// The calls that a function makes, recorded instead of run: what the fusing compiler sees of it. The function gets
// tensors without memory in place of its arguments, and every call that submit() sees becomes a value that can be run
// again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/context.h"
#include "ops/call.h"

namespace rooflab {

// A tensor of a trace. Storages are numbered. Overwriting one gives it a new number, so a number stands for one value.
struct View {
  int storage = -1;  // -1: an absent operand, or a number in its place
  Shape shape, strides;
  int64_t offset = 0;  // of the first element, in elements
  DType dtype = DType::kFloat32;

  bool operator==(const View&) const = default;
};

struct TracedCall {
  std::shared_ptr<const AnyCall> call;  // without tensors
  std::vector<View> inputs, outputs;
  int continues = -1;  // the storage of which it writes a part: the result is that storage, changed
};

class Trace {
 public:
  // Between the two, this thread's calls are recorded, and neither run nor counted. `device` is where they would run.
  explicit Trace(Device device);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  void begin();
  void end();

  // A tensor for the function, with the layout of `x`. Arguments that share memory also share it here. is_leaf: false
  // if x is the result of an op. What stands for it is a leaf all the same, so asking how it was made is refused.
  Tensor argument(const Tensor& x, bool is_leaf = true);
  View view_of(const Tensor& x) const;  // ValueError if no call of the trace made it
  bool knows(const Tensor& x) const { return numbers_.contains(x.storage().get()); }
  bool is_argument(const Tensor& x) const;
  bool is_inner(const Tensor& x) const { return inner_.contains(x.storage().get()); }  // of an argument that is no leaf

  void add(const AnyCall& call);

  // After the last call. Results lie in memory as they do without a trace, so some are turned (empty_beside).
  // Elementwise calls that make such become the same calls on permuted dimensions, whose results are in order. A turned
  // result that is read only by chains in order is put in order itself, so that it joins them. Not those in `seen`: the
  // caller knows them by their strides.
  void put_in_order(const std::vector<View>& seen);

  Device device() const { return device_; }
  const std::vector<TracedCall>& calls() const { return calls_; }
  int64_t bytes_of(int storage) const { return bytes_[storage]; }

  static Trace* current();  // the trace that this thread records; null if none
  // Where a tensor for `device` is made: while a function is traced, on the device of its arguments' stand-ins.
  static Device stand_in(Device device);
  static Device stood_for(Device device);  // the other way round
  // For calls that cannot be recorded and run again: throws ValueError if this thread records a trace.
  static void refuse(const char* op, const char* why);
  // The function may catch an error that it gets only while it is recorded, and what follows is not what it does when
  // it runs. Keeps the first one's text.
  static void note_error(const char* text);
  std::string error() const;  // that one, or what the function leaves changed; empty: there was none

 private:
  void number(const std::shared_ptr<Storage>& storage, bool is_argument);
  bool is_turned(const View& y) const;  // whether it shows a whole storage, with its dimensions in another order

  Device outside_;  // of the arguments
  Device device_;   // a device without memory
  std::string error_;
  bool is_recording_ = false;
  // What the thread returns to. A checkpoint around a trace has no part in what is recorded.
  Mode outer_;
  std::shared_ptr<autograd::Checkpoint> outer_checkpoint_;
  std::vector<Tensor>* outer_recomputed_ = nullptr;
  autograd::ReadScope* outer_reads_ = nullptr;
  bool outer_records_gradients_ = true;
  std::optional<DType> outer_low_dtype_;
  int outer_autocasts_ = 0;

  std::vector<TracedCall> calls_;
  std::vector<int64_t> bytes_;  // of each storage
  std::vector<bool> is_argument_;
  std::unordered_map<const Storage*, int> numbers_;  // the number of the value that a storage holds now
  std::unordered_set<const Storage*> inner_;
  std::vector<std::weak_ptr<Storage>> seen_;  // while one is alive, no other storage can have its address
  struct Twin {
    std::shared_ptr<Storage> own, argument;
  };
  std::unordered_map<const Storage*, Twin> twins_;  // of the arguments' storages
};

}  // namespace rooflab
