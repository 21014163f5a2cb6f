#include "autograd/engine.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "autograd/checkpoint.h"
#include "core/mutex.h"
#include "core/range.h"

namespace rooflab::autograd {
namespace {

// The nodes that outputs depend on, latest first: a node comes after all nodes that use its results.
std::vector<Node*> nodes_under(const Tensors& outputs) {
  std::vector<Node*> nodes;
  std::unordered_set<const Node*> seen;
  auto visit = [&](const std::shared_ptr<Meta>& meta) {
    if (meta && meta->node && seen.insert(meta->node.get()).second) nodes.push_back(meta->node.get());
  };
  for (const Tensor& y : outputs) visit(y.meta());
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::shared_ptr<Meta>& input : nodes[i]->inputs) visit(input);
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->sequence > b->sequence; });
  return nodes;
}

// Whether nothing else uses the tensor's memory and the tensor fills all of it.
bool is_own(const Tensor& x) {
  return x.storage().use_count() == 1 && x.is_contiguous() && x.storage()->bytes() == x.nbytes();
}

Mutex accumulating(LockOrder::kAccumulate);  // nobody waits for it with Python's lock: kernels may run under it

// Adds to the grad that a leaf has, in place: graphs and students expect its memory to stay. False where there is none,
// or where something else holds its memory, which the rest of the pass may still read.
bool add_to_unshared(const Meta& leaf, const Tensor& gradient, const Arithmetic& arithmetic) {
  Tensor sum;  // dies after the lock
  std::lock_guard lock(accumulating);
  sum = leaf.grad();
  constexpr long kOwners = 2;  // the leaf, and `sum`
  if (!sum.defined() || sum.storage().use_count() > kOwners || sum.overlaps_itself()) return false;
  arithmetic.add_into(sum, gradient);
  return true;
}

// The whole gradient of a tensor after its hooks.
Tensor hooked(Meta& meta, Tensor gradient, const Arithmetic& arithmetic) {
  for (const auto& [number, hook] : meta.hooks()) {
    const SharedGradient given(gradient);
    Tensor other = hook(gradient);
    given.check_unwritten("register_hook", "the hook");
    if (!other.defined()) continue;
    check_gradient("register_hook", meta, other);
    gradient = std::move(other);
  }
  if (meta.node && meta.retains_grad) {
    const Tensor before = meta.grad();  // what goes on may reach hooks, another grad, or the user who gave it
    const Tensor replaced =
        meta.exchange_grad(before.defined() ? arithmetic.add(before, gradient) : arithmetic.copy(gradient));
  }
  return gradient;
}

// One backward pass through a graph.
class Sweep {
 public:
  // Towards `targets`; when empty, towards every leaf, each of which adds to its grad once all that it gets is there.
  Sweep(const Tensors& outputs, const Tensors& targets, const Arithmetic& arithmetic)
      : arithmetic_(arithmetic), nodes_(nodes_under(outputs)) {
    for (const Tensor& x : targets) targets_.insert(x.meta().get());
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      State& state = states_[*node];
      state.gradients.resize((*node)->results);
      for (const std::shared_ptr<Meta>& input : (*node)->inputs) {
        state.wanted.push_back(input && leads_to_target(*input));
        state.leads_to_target |= state.wanted.back();
        if (input && !input->node) ++waiting_[input.get()];
      }
    }
    for (const Tensor& x : targets)
      if (const auto found = states_.find(x.meta()->node.get()); found != states_.end()) found->second.is_target = true;
  }

  void deliver(const std::shared_ptr<Meta>& meta, Tensor gradient) {
    Tensor& sum = place_of(meta);
    if (meta->node && (meta->retains_grad || !meta->hooks().empty())) states_.at(meta->node.get()).hooked.insert(meta);
    if (!sum.defined())
      sum = std::move(gradient);
    else if (is_own(sum))
      arithmetic_.add_into(sum, gradient);
    else
      sum = arithmetic_.add(sum, gradient);
  }

  void run(bool retain_graph) {
    for (Node* node : nodes_) {
      State& state = states_.at(node);
      const bool has_gradient =
          std::any_of(state.gradients.begin(), state.gradients.end(), std::mem_fn(&Tensor::defined));
      if (has_gradient && state.leads_to_target) {
        call_hooks(state);
        const RangeScope range(node->op);
        apply(*node, state, retain_graph);
      } else {
        call_hooks(state);  // of a target of grad() that no other target lies behind
        for (const std::shared_ptr<Meta>& input : node->inputs) arrive(input, {});
      }
    }
  }

  // Whether the memory of x is that of a leaf's grad, which changes during the pass.
  bool is_grad_of_leaf(const Tensor& x) const {
    return x.defined() && std::any_of(waiting_.begin(), waiting_.end(),
                                      [&](const auto& leaf) { return leaf.first->grad().overlaps(x); });
  }

  // What arrived at a target; not defined when nothing did.
  Tensor gradient_at(const std::shared_ptr<Meta>& meta) {
    if (meta->node) return states_.contains(meta->node.get()) ? place_of(meta) : Tensor();
    place_of(meta);
    return finished(leaves_[leaf_places_.at(meta.get())]);
  }

  struct Leaf {
    std::shared_ptr<Meta> meta;
    Tensor gradient;
    bool is_finished = false;  // its hooks were called
  };
  Tensor& finished(Leaf& leaf) {
    if (leaf.gradient.defined() && !std::exchange(leaf.is_finished, true))
      leaf.gradient = hooked(*leaf.meta, std::move(leaf.gradient), arithmetic_);
    return leaf.gradient;
  }
  std::vector<Leaf>& leaves() { return leaves_; }  // in the order in which gradients reached them; some were added

 private:
  // Where the gradients of a tensor of the graph are accumulated.
  Tensor& place_of(const std::shared_ptr<Meta>& meta) {
    if (meta->node) return states_.at(meta->node.get()).gradients[meta->index];
    const auto [place, is_new] = leaf_places_.try_emplace(meta.get(), leaves_.size());
    if (is_new) leaves_.push_back({meta, Tensor()});
    return leaves_[place->second].gradient;
  }

  struct State {
    Tensors gradients;  // of the node's results
    std::vector<bool> wanted;
    bool leads_to_target = false, is_target = false;
    std::unordered_set<std::shared_ptr<Meta>> hooked;  // results whose hooks wait for the whole gradient
  };

  void call_hooks(State& state) {
    for (const std::shared_ptr<Meta>& meta : state.hooked)
      if (Tensor& gradient = state.gradients[meta->index]; gradient.defined())
        gradient = hooked(*meta, std::move(gradient), arithmetic_);
    state.hooked.clear();
  }

  bool leads_to_target(const Meta& meta) const {
    if (targets_.empty() ? !meta.node : targets_.contains(&meta)) return true;
    return meta.node && states_.at(meta.node.get()).leads_to_target;
  }

  // A node that will not run again first releases what it saved, so that a rule may turn out to be its only holder.
  void apply(Node& node, State& state, bool retain_graph) {
    Tensors gradients = state.is_target ? state.gradients : std::move(state.gradients);
    std::vector<bool> given(state.wanted.size());
    const Gradients::Give give = [&](int i, Tensor gradient) {
      given[i] = true;
      if (!state.wanted[i]) gradient = {};
      if (gradient.defined()) check_gradient(node.op, *node.inputs[i], gradient);
      arrive(node.inputs[i], std::move(gradient));
    };
    Node::Work work = retain_graph ? node.copy() : node.take();
    Tensors results = work.rule({gradients, state.wanted, give}, work.saved);
    RL_CHECK(results.size() == given.size(), node.op, "backward: expected ", given.size(), " gradients, got ",
             results.size());
    work = {};  // nothing of it shall hold what it made
    gradients.clear();
    for (size_t i = 0; i < results.size(); ++i)
      if (!given[i]) give(static_cast<int>(i), std::move(results[i]));
  }

  // What a node has for one of its inputs, not defined() if nothing.
  void arrive(const std::shared_ptr<Meta>& input, Tensor gradient) {
    if (gradient.defined()) deliver(input, std::move(gradient));
    if (!targets_.empty() || !input || input->node || --waiting_.at(input.get()) > 0) return;
    const auto place = leaf_places_.find(input.get());
    if (place == leaf_places_.end()) return;
    Tensor& sum = finished(leaves_[place->second]);
    if (!input->requires_grad || add_to_unshared(*input, sum, arithmetic_)) sum = {};  // it may be frozen by now
  }

  const Arithmetic& arithmetic_;
  const std::vector<Node*> nodes_;
  std::unordered_set<const Meta*> targets_;
  std::unordered_map<const Node*, State> states_;
  std::vector<Leaf> leaves_;
  std::unordered_map<const Meta*, size_t> leaf_places_;
  std::unordered_map<const Meta*, int> waiting_;  // for how many nodes a leaf waits
};

// Adds to the gradient of a leaf.
void accumulate(Meta& leaf, const Tensor& gradient, const Arithmetic& arithmetic) {
  Tensor before, replaced;  // they die after the lock
  std::lock_guard lock(accumulating);
  before = leaf.grad();
  // In place: graphs and students expect its memory to stay.
  if (before.defined() && !before.overlaps_itself()) return arithmetic.add_into(before, gradient);
  replaced = leaf.exchange_grad(before.defined()   ? arithmetic.add(before, gradient)
                                : is_own(gradient) ? gradient
                                                   : arithmetic.copy(gradient));  // a view of nobody else's memory
}

void start(Sweep& sweep, const Tensors& outputs, Tensors gradients, bool retain_graph) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    RL_CHECK(requires_grad(outputs[i]), "backward", "the tensor does not require grad, so nothing was recorded");
    check_gradient("backward", *outputs[i].meta(), gradients[i]);
    sweep.deliver(outputs[i].meta(), std::exchange(gradients[i], {}));
  }
  sweep.run(retain_graph);
}

}  // namespace

SharedGradient::SharedGradient(const Tensor& gradient)
    : storage_(gradient.defined() && gradient.storage().use_count() > 1 ? gradient.storage().get() : nullptr),
      version_(storage_ ? storage_->version() : Version{}) {}

void SharedGradient::check_unwritten(const std::string& op, const char* who) const {
  RL_CHECK(!storage_ || storage_->is_at(version_), op, who,
           " wrote into its gradient, whose memory others use too, such as another gradient or a tensor that you kept; "
           "return a new tensor instead");
}

void check_gradient(const std::string& op, const Meta& meta, const Tensor& gradient) {
  const auto describe = [](const Shape& shape, DType dtype, Device device) {
    return message(shape, " ", name(dtype), " on ", to_string(device));
  };
  RL_CHECK(gradient.shape() == meta.shape && gradient.dtype() == meta.dtype && gradient.device() == meta.device, op,
           "gradient: expected ", describe(meta.shape, meta.dtype, meta.device), ", got ",
           describe(gradient.shape(), gradient.dtype(), gradient.device()));
}

void backward(const Tensors& outputs, Tensors gradients, bool retain_graph, const Arithmetic& arithmetic) {
  const GradMode off(false);
  const RangeScope range("backward");
  Sweep sweep(outputs, {}, arithmetic);
  for (Tensor& dy : gradients)
    if (sweep.is_grad_of_leaf(dy)) dy = arithmetic.copy(dy);
  start(sweep, outputs, std::move(gradients), retain_graph);
  for (Sweep::Leaf& leaf : sweep.leaves()) {
    if (!sweep.finished(leaf).defined()) continue;
    accumulate(*leaf.meta, leaf.gradient, arithmetic);
    leaf.gradient = {};
  }
}

Tensors grad(const Tensors& outputs, Tensors gradients, const Tensors& inputs, bool retain_graph,
             const Arithmetic& arithmetic) {
  for (const Tensor& x : inputs) RL_CHECK(requires_grad(x), "grad", "inputs: expected tensors that require grad");
  const GradMode off(false);
  const RangeScope range("backward");
  Sweep sweep(outputs, inputs, arithmetic);
  start(sweep, outputs, std::move(gradients), retain_graph);
  Tensors found;
  for (const Tensor& x : inputs) found.push_back(sweep.gradient_at(x.meta()));
  return found;
}

std::vector<SavedTensor> saved_tensors(const Tensor& y) {
  std::vector<SavedTensor> found;
  std::unordered_set<const Storage*> seen;
  const std::vector<Node*> nodes = nodes_under({y});
  auto list = [&](const std::string& op, const std::vector<Saved>& saved) {
    for (const auto& [x, version, is_outside] : saved) {
      if (!x.defined() || !seen.insert(x.storage().get()).second) continue;
      const int64_t bytes = x.storage()->bytes() ? x.storage()->bytes() : x.nbytes();  // foreign memory: 0
      found.push_back({op, x.shape(), x.dtype(), bytes, is_outside});
    }
  };
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (const Checkpoint* checkpoint = Checkpoint::of(**node)) list("checkpoint", checkpoint->inputs());
    list((*node)->op, (*node)->held());
  }
  return found;
}

}  // namespace rooflab::autograd
