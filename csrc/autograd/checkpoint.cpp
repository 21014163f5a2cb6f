#include "autograd/checkpoint.h"

#include <algorithm>
#include <utility>

#include "core/context.h"
#include "core/mutex.h"
#include "core/range.h"

namespace rooflab::autograd {
namespace {

Mutex mutex(LockOrder::kGraphs);  // several threads may run backward through a checkpoint's nodes

}  // namespace

// A node's rule, and where the checkpoint keeps what the node needs but does not hold.
struct Checkpoint::Rule {
  std::shared_ptr<Checkpoint> checkpoint;
  std::vector<std::pair<size_t, size_t>> places;  // (place among what the node saved, place in the checkpoint)
  Node::Rule rule;

  Tensors operator()(const Gradients& dy, Tensors& saved) const {
    for (const auto& [slot, place] : places) saved[slot] = checkpoint->take(place);
    return rule(dy, saved);
  }
};

Checkpoint::Checkpoint(const Tensors& inputs, std::function<void()> again) : again_(std::move(again)) {
  for (const Tensor& x : inputs)
    inputs_.push_back({x.detach(), x.storage()->version(), !x.meta() || x.meta()->is_outside});
}

Checkpoint::Scope::Scope(std::shared_ptr<Checkpoint> checkpoint, Tensors* made)
    : outer_(std::exchange(context().checkpoint, std::move(checkpoint))),
      outer_made_(std::exchange(context().recomputed, made)),
      reads_(context().checkpoint->reads_, made ? ReadScope::kAgain : ReadScope::kFirst),
      draws_(context().checkpoint->draws_, made ? DrawScope::kAgain : DrawScope::kFirst) {}

Checkpoint::Scope::~Scope() {
  context().checkpoint = std::move(outer_);
  context().recomputed = outer_made_;
}

void Checkpoint::enter(Node& node, std::span<const Ref> saved) {
  const Context& own = context();
  if (!own.checkpoint || own.mode.counter) return;
  own.recomputed ? own.checkpoint->collect(saved, *own.recomputed) : own.checkpoint->hide(node, saved);
}

const Checkpoint* Checkpoint::of(const Node& node) {
  const Rule* rule = node.rule.target<Rule>();
  return rule ? rule->checkpoint.get() : nullptr;
}

// Leaves, views of them and the inputs are in memory anyway. Constants may have been made inside, such as a mask.
bool Checkpoint::can_make(const Ref& given) const {
  if (!given.tensor || (given.tensor->meta() && given.tensor->meta()->is_outside)) return false;
  return std::none_of(inputs_.begin(), inputs_.end(),
                      [&](const Saved& input) { return input.tensor.storage() == given.tensor->storage(); });
}

void Checkpoint::hide(Node& node, std::span<const Ref> saved) {
  Rule rule{shared_from_this(), {}, {}};
  for (size_t slot = 0; slot < node.saved.size(); ++slot) {
    if (!can_make(saved[slot])) continue;
    rule.places.emplace_back(slot, hidden_.size());
    hidden_.push_back({saved[slot].tensor->shape(), saved[slot].tensor->dtype()});
    node.saved[slot] = {};
  }
  if (rule.places.empty()) return;
  rule.rule = std::move(node.rule);
  node.rule = std::move(rule);
}

void Checkpoint::collect(std::span<const Ref> saved, Tensors& made) const {
  for (const Ref& given : saved)
    if (can_make(given)) made.push_back(given.tensor->detach());
}

// The function runs outside the lock, because it is Python's and may take its time.
Tensor Checkpoint::take(size_t place) {
  Tensors made;  // what it replaces dies after the lock
  for (;; made = run_again()) {
    std::lock_guard lock(mutex);
    if (!made.empty()) made_.swap(made);
    if (!made_.empty() && made_[place].defined()) return std::exchange(made_[place], {});
  }
}

Tensors Checkpoint::run_again() {
  for (const Saved& input : inputs_)
    RL_CHECK(input.tensor.storage()->is_at(input.version), "checkpoint", "backward: an input of shape ",
             input.tensor.shape(), " was changed in place, so the function cannot run again on what it was");
  Tensors made;
  {
    const GradMode on(true);
    const RangeScope range("recompute");
    const Scope scope(shared_from_this(), &made);
    again_();
    scope.check_all_drawn();
  }
  const bool is_same =
      std::equal(made.begin(), made.end(), hidden_.begin(), hidden_.end(),
                 [](const Tensor& x, const Like& like) { return x.shape() == like.shape && x.dtype() == like.dtype; });
  RL_CHECK(is_same, "checkpoint", "backward: the function saved ", hidden_.size(), " tensors, and ", made.size(),
           " or others when it ran again; expected it to do the same each time");
  return made;
}

}  // namespace rooflab::autograd
