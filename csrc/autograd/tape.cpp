#include "autograd/tape.h"

#include <atomic>
#include <mutex>

#include "autograd/checkpoint.h"
#include "core/context.h"
#include "core/mutex.h"

namespace rooflab::autograd {
namespace {

std::atomic<int64_t> next_sequence{0};

// Whether the memory of x existed before the graph.
bool is_outside(const Tensor& x) { return !x.meta() || x.meta()->is_outside; }

// Guards what threads that run backward share: the gradients of leaves, and what nodes have saved. Nothing dies under
// it, because a tensor's memory may be another library's, whose release waits for Python's lock.
Mutex mutex(LockOrder::kGraphs);

}  // namespace

// References that keep other nodes alive. They are released in a loop, not by recursion.
struct Parts {
  std::vector<std::shared_ptr<Meta>> inputs;
  Node::Rule rule;
};

Tensor Meta::grad() const {
  std::lock_guard lock(mutex);
  return grad_;
}

Tensor Meta::exchange_grad(Tensor grad) {
  std::lock_guard lock(mutex);
  return std::exchange(grad_, std::move(grad));
}

int64_t Meta::add_hook(Hook hook) {
  static std::atomic<int64_t> next{0};
  const int64_t number = next.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex);
  hooks_.emplace_back(number, std::move(hook));
  return number;
}

void Meta::remove_hook(int64_t number) {
  Hook removed;  // dies after the lock
  std::lock_guard lock(mutex);
  for (auto place = hooks_.begin(); place != hooks_.end(); ++place)
    if (place->first == number) {
      removed = std::move(place->second);
      hooks_.erase(place);
      return;
    }
}

std::vector<std::pair<int64_t, Meta::Hook>> Meta::hooks() const {
  std::lock_guard lock(mutex);
  return hooks_;
}

bool is_enabled() { return context().records_gradients; }
bool set_enabled(bool enabled) { return std::exchange(context().records_gradients, enabled); }

void mark_parameter(Tensor& x) {
  if (!x.meta()) x.set_meta(std::make_shared<Meta>(x));
  x.meta()->is_parameter = true;
}

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
  std::vector<Parts>*& dismantling = context().dismantling;
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

Node::Work Node::unpack() const {
  RL_CHECK(rule, op, "backward: what it saved was freed by an earlier backward; pass retain_graph=True to that one");
  Work work;
  for (const Saved& item : saved) {
    RL_CHECK(!item.tensor.defined() || item.tensor.storage()->is_at(item.version), op, "backward: a tensor of shape ",
             item.tensor.shape(), " saved for backward was changed in place; write into a clone() of it instead");
    work.saved.push_back(item.tensor);
  }
  return work;
}

Node::Work Node::copy() const {
  std::lock_guard lock(mutex);
  Work work = unpack();
  work.rule = rule;
  return work;
}

Node::Work Node::take() {
  std::vector<Saved> released;
  std::lock_guard lock(mutex);
  Work work = unpack();
  if (saved.empty()) {  // it holds nothing, so it may run again
    work.rule = rule;
  } else {
    released.swap(saved);
    work.rule = std::exchange(rule, nullptr);
  }
  return work;
}

std::vector<Saved> Node::held() const {
  std::lock_guard lock(mutex);
  return saved;
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
