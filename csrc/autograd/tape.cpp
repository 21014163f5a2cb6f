#include "autograd/tape.h"

#include <atomic>

#include "autograd/checkpoint.h"

namespace rooflab::autograd {
namespace {

thread_local bool enabled = true;
std::atomic<int64_t> next_sequence{0};

// Whether the memory of x existed before the graph.
bool is_outside(const Tensor& x) { return !x.meta() || x.meta()->is_outside; }

// References that keep other nodes alive. They are released in a loop, not by recursion.
struct Parts {
  std::vector<std::shared_ptr<Meta>> inputs;
  Node::Rule rule;
};
thread_local std::vector<Parts>* dismantling = nullptr;

}  // namespace

std::mutex& grad_mutex() {
  static std::mutex mutex;
  return mutex;
}

bool is_enabled() { return enabled; }
bool set_enabled(bool enable) { return std::exchange(enabled, enable); }

void set_requires_grad(Tensor& x, bool requires_grad) {
  RL_CHECK(!requires_grad || is_floating(x.dtype()), "requires_grad", "expected a floating-point dtype, got ",
           name(x.dtype()));
  if (!x.meta()) {
    if (!requires_grad) return;
    x.set_meta(std::make_shared<Meta>(x));
  }
  RL_CHECK(requires_grad || !x.meta()->node, "requires_grad", "the tensor is a result of ", x.meta()->node->op,
           "; use detach() to take it out of the graph");
  x.meta()->requires_grad = requires_grad;
}

Node::~Node() {
  if (dismantling) {
    dismantling->push_back({std::move(inputs), std::move(rule)});
    return;
  }
  std::vector<Parts> queue;
  dismantling = &queue;
  queue.push_back({std::move(inputs), std::move(rule)});
  while (!queue.empty()) {
    const Parts parts = std::move(queue.back());
    queue.pop_back();
  }
  dismantling = nullptr;
}

Tensors Node::unpack() const {
  RL_CHECK(rule, op, "backward: what it saved was freed by an earlier backward; pass retain_graph=True to that one");
  Tensors tensors;
  for (const Saved& item : saved) {
    RL_CHECK(!item.tensor.defined() || item.tensor.storage()->version() == item.version, op,
             "backward: a tensor of shape ", item.tensor.shape(),
             " saved for backward was changed in place; write into a clone() of it instead");
    tensors.push_back(item.tensor);
  }
  return tensors;
}

void Node::release() {
  if (saved.empty()) return;  // it holds nothing, so it may run again
  saved.clear();
  rule = nullptr;
}

void attach(std::string op, std::span<Tensor* const> results, std::span<const Ref> inputs, std::span<const Ref> saved,
            Node::Rule rule) {
  auto node = std::make_shared<Node>();
  node->op = std::move(op);
  node->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  node->results = static_cast<int>(results.size());
  node->rule = std::move(rule);
  for (const Ref& x : inputs) node->inputs.push_back(x.tensor && requires_grad(*x.tensor) ? x.tensor->meta() : nullptr);
  // The memory of views and of saved inputs comes from outside the graph if that of the input does.
  auto from_outside = [&](const Tensor& x) {
    for (const Ref& input : inputs)
      if (input.tensor && input.tensor->storage() == x.storage()) return is_outside(*input.tensor);
    return false;
  };
  for (const Ref& x : saved)
    node->saved.push_back(x.tensor ? Saved{x.tensor->detach(), x.tensor->storage()->version(), from_outside(*x.tensor)}
                                   : Saved{});
  Checkpoint::enter(*node, saved);
  for (size_t i = 0; i < results.size(); ++i) {
    auto meta = std::make_shared<Meta>(*results[i]);
    meta->requires_grad = true;
    meta->is_outside = from_outside(*results[i]);
    meta->node = node;
    meta->index = static_cast<int>(i);
    results[i]->set_meta(std::move(meta));
  }
}

void check_destination(const char* op, const Tensor& destination) {
  RL_CHECK(!recording(destination), op,
           "destination: requires grad, so writing into it would falsify its gradient; write under rl.no_grad(), or "
           "into a clone()");
}

void check_source(const char* op, const Tensor& source) {
  RL_CHECK(!recording(source), op,
           "source: requires grad, and its gradient would be lost; write source.detach(), or under rl.no_grad()");
}

}  // namespace rooflab::autograd
