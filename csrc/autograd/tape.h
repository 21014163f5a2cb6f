// The tape: every op that meets a tensor which requires grad records how to take gradients back through it.
//
// An op does so once it has its result, behind one branch, with the tensors that its rule will need:
//
//   Tensor y = ...;
//   if (autograd::recording(x))
//     autograd::record("exp", y, {x}, autograd::saving(y), [](const Tensor& dy, const Tensor& y) { return dy * y; });
//
// The rule gets the gradient of the result, then what was saved, in that order. With several inputs it takes Gradients,
// which tells which inputs need a gradient, and returns one per input, in order: Tensor() where none is needed or where
// it is zero everywhere:
//
//   if (autograd::recording(a, b))
//     autograd::record("mul", y, {a, b}, autograd::saving(a, b),
//                      [](const Gradients& dy, const Tensor& a, const Tensor& b) -> Tensors {
//                        return {dy.wanted(0) ? dy * b : Tensor(), dy.wanted(1) ? dy * a : Tensor()};
//                      });
//
// With several results, {&out, &lse} takes the place of y, and dy[1] is the gradient of lse: not defined() if lse was
// not used. Inputs and saved tensors may be std::optional or not defined(). Rules run with grad mode off. Inside an op,
// the members of Tensor (view, transpose, detach ...) return tensors that record nothing.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace rooflab::autograd {

struct Node;
using Tensors = std::vector<Tensor>;

// What a tensor in a graph carries. Copies of the tensor share it.
struct Meta {
  explicit Meta(const Tensor& x) : shape(x.shape()), dtype(x.dtype()), device(x.device()) {}

  std::atomic<bool> requires_grad = false;
  bool is_outside = true;                  // its memory is that of a leaf: no op of the graph made it
  std::shared_ptr<Node> node;              // the op that made it; null for a leaf
  std::atomic<bool> is_parameter = false;  // of a module, also while it requires no grad
  int index = 0;                           // which of the op's results it is
  Shape shape;                             // of the tensor, and so of its gradient
  DType dtype;
  Device device;

  // Of a leaf, accumulated over calls of backward. Several threads may run backward into the same leaf while Python
  // reads it.
  Tensor grad() const;
  [[nodiscard]] Tensor exchange_grad(Tensor grad);  // returns the one before, for the caller to destroy

  // What backward calls with the whole gradient of this tensor, in order, before it goes on. What a hook returns takes
  // the gradient's place, unless it is not defined().
  using Hook = std::function<Tensor(const Tensor& gradient)>;
  int64_t add_hook(Hook hook);  // returns its number
  void remove_hook(int64_t number);
  std::vector<std::pair<int64_t, Hook>> hooks() const;
  std::atomic<bool> retains_grad = false;  // backward also adds the gradient of this result of an op to its grad

 private:
  Tensor grad_;
  std::vector<std::pair<int64_t, Hook>> hooks_;
};

inline bool requires_grad(const Tensor& x) { return x.meta() && x.meta()->requires_grad; }
inline bool requires_grad(const std::optional<Tensor>& x) { return x && requires_grad(*x); }
void set_requires_grad(Tensor& x, bool requires_grad);  // of a leaf
inline bool is_parameter(const Tensor& x) { return x.meta() && x.meta()->is_parameter; }
void mark_parameter(Tensor& x);

// Grad mode of this thread: nothing is recorded while it is off.
bool is_enabled();
bool set_enabled(bool enabled);  // returns the previous mode
class GradMode {
 public:
  explicit GradMode(bool enabled) : previous_(set_enabled(enabled)) {}
  ~GradMode() { set_enabled(previous_); }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool previous_;
};

// The gradients that reach a node in the backward pass, and where those that it makes go.
class Gradients {
 public:
  using Give = std::function<void(int input, Tensor gradient)>;
  Gradients(Tensors& results, const std::vector<bool>& wanted, const Give& give)
      : results_(results), wanted_(wanted), give_(give) {}

  const Tensor& operator[](int result) const { return results_[result]; }  // not defined: zero everywhere
  operator const Tensor&() const { return results_[0]; }
  bool wanted(int input) const { return wanted_[input]; }

  // For a rule of many steps: take() leaves no other holder behind, and what it gives away goes to its input at once.
  Tensor take(int result) const { return std::exchange(results_[result], {}); }
  void give(int input, Tensor gradient) const { give_(input, std::move(gradient)); }

 private:
  Tensors& results_;
  const std::vector<bool>& wanted_;
  const Give& give_;
};

// A tensor that a rule needs, without its place in the graph, and its version when it was saved.
struct Saved {
  Tensor tensor;
  Version version;
  bool is_outside;  // a leaf or a constant, which the user holds anyway
};

struct Node {
  using Rule = std::function<Tensors(const Gradients&, Tensors& saved)>;  // it may move from what was saved

  ~Node();  // destroys chains of any length without recursion

  // What a backward pass needs, several of which may go through the node at once. ValueError if what was saved was
  // written to since, or released.
  struct Work {
    Tensors saved;
    Rule rule;
  };
  Work copy() const;
  Work take();                      // and releases what was saved
  std::vector<Saved> held() const;  // what is saved now

  std::string op;
  int64_t sequence;  // larger than that of all nodes it depends on
  int results;
  std::vector<std::shared_ptr<Meta>> inputs;  // null where no gradient is needed
  std::vector<Saved> saved;
  Rule rule;  // null once what was saved is released

 private:
  Work unpack() const;
};

// An argument that may be absent.
struct Ref {
  Ref(const Tensor& x) : tensor(x.defined() ? &x : nullptr) {}
  Ref(const std::optional<Tensor>& x) : tensor(x ? &*x : nullptr) {}
  Ref(std::nullopt_t) {}
  const Tensor* tensor = nullptr;
};

// The tensors to save. Some of them may be needed only if another input needs a gradient.
template <class... T>
std::array<Ref, sizeof...(T)> saving(const T&... tensors) {
  return {Ref(tensors)...};
}
inline Ref only_if(bool needed, const Tensor& x) { return needed ? Ref(x) : Ref(std::nullopt); }

// Whether a result computed from these must be recorded.
template <class... T>
bool recording(const T&... inputs) {
  return (requires_grad(inputs) || ...) && is_enabled();
}

// Makes `results` the results of a new node.
void attach(std::string op, std::span<Tensor* const> results, std::span<const Ref> inputs, std::span<const Ref> saved,
            Node::Rule rule);

template <size_t N, class Rule>
void record(const char* op, std::initializer_list<Tensor*> results, std::span<const Ref> inputs,
            const std::array<Ref, N>& saved, Rule rule) {
  auto unpacked =
      [rule = std::move(
           rule)]<size_t... I>(const Gradients& dy, const Tensors& saved, std::index_sequence<I...>)->Tensors {
    return {rule(dy, saved[I]...)};
  };
  attach(op, results, inputs, saved, [unpacked = std::move(unpacked)](const Gradients& dy, const Tensors& saved) {
    return unpacked(dy, saved, std::make_index_sequence<N>());
  });
}

template <size_t N, class Rule>
void record(const char* op, Tensor& y, std::initializer_list<Ref> inputs, const std::array<Ref, N>& saved, Rule rule) {
  record(op, {&y}, std::span(inputs.begin(), inputs.size()), saved, std::move(rule));
}

template <class Rule>
void record(const char* op, Tensor& y, std::initializer_list<Ref> inputs, Rule rule) {
  record(op, {&y}, std::span(inputs.begin(), inputs.size()), saving(), std::move(rule));
}

// In grad mode these refuse what gradients could not take into account: writing into a tensor that requires grad, or
// writing such a tensor into another one. Ops that write into a tensor they are given call these, then bump its
// storage's version.
void check_destination(const char* op, const Tensor& destination);
void check_source(const char* op, const Tensor& source);

}  // namespace rooflab::autograd

namespace rooflab {
using autograd::Gradients;
using autograd::Tensors;
}  // namespace rooflab
