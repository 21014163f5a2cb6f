#include "autograd/checkpoint.h"

#include <algorithm>
#include <utility>

#include "core/range.h"

namespace rooflab::autograd {
namespace {

thread_local std::shared_ptr<Checkpoint> current;
thread_local bool is_again = false;

}  // namespace

// A node's rule, with the places in the checkpoint of what it needs and does not hold.
struct Checkpoint::Rule {
  std::shared_ptr<Checkpoint> checkpoint;
  std::vector<std::pair<size_t, size_t>> places;  // (among what the node saved, in the checkpoint)
  Node::Rule rule;

  Tensors operator()(const Gradients& dy, const Tensors& held) const {
    Tensors saved = held;
    for (const auto& [slot, place] : places) saved[slot] = checkpoint->take(place);
    return rule(dy, saved);
  }
};

Checkpoint::Checkpoint(const Tensors& inputs, std::function<void()> again) : again_(std::move(again)) {
  for (const Tensor& x : inputs)
    inputs_.push_back({x.detach(), x.storage()->version(), !x.meta() || x.meta()->is_outside});
}

Checkpoint::Scope::Scope(std::shared_ptr<Checkpoint> checkpoint, bool again)
    : outer_(std::exchange(current, std::move(checkpoint))), outer_is_again_(std::exchange(is_again, again)) {}

Checkpoint::Scope::~Scope() {
  current = std::move(outer_);
  is_again = outer_is_again_;
}

void Checkpoint::enter(Node& node) {
  if (!current) return;
  is_again ? current->collect(node) : current->hide(node);
}

const Checkpoint* Checkpoint::of(const Node& node) {
  const Rule* rule = node.rule.target<Rule>();
  return rule ? rule->checkpoint.get() : nullptr;
}

// Weights, constants and the inputs are in memory anyway.
bool Checkpoint::can_make(const Saved& item) const {
  return item.tensor.defined() && !item.is_outside &&
         std::none_of(inputs_.begin(), inputs_.end(),
                      [&](const Saved& input) { return input.tensor.storage() == item.tensor.storage(); });
}

void Checkpoint::hide(Node& node) {
  Rule rule{shared_from_this(), {}, {}};
  for (size_t slot = 0; slot < node.saved.size(); ++slot) {
    Saved& item = node.saved[slot];
    if (!can_make(item)) continue;
    rule.places.emplace_back(slot, hidden_.size());
    hidden_.push_back({item.tensor.shape(), item.tensor.dtype()});
    item = {};
  }
  if (rule.places.empty()) return;
  rule.rule = std::move(node.rule);
  node.rule = std::move(rule);
}

void Checkpoint::collect(Node& node) {
  for (Saved& item : node.saved)
    if (can_make(item)) made_.push_back(std::exchange(item, {}).tensor);
}

Tensor Checkpoint::take(size_t place) {
  if (made_.empty() || !made_[place].defined()) run_again();
  return std::exchange(made_[place], {});
}

void Checkpoint::run_again() {
  for (const Saved& input : inputs_)
    RL_CHECK(input.tensor.storage()->version() == input.version, "checkpoint", "backward: an input of shape ",
             input.tensor.shape(), " was changed in place, so the function cannot run again on what it was");
  made_.clear();
  try {
    const GradMode on(true);
    const RangeScope range("recompute");
    const Scope scope(shared_from_this(), true);
    again_();
  } catch (...) {
    made_.clear();
    throw;
  }
  const bool is_same =
      std::equal(made_.begin(), made_.end(), hidden_.begin(), hidden_.end(),
                 [](const Tensor& x, const Like& like) { return x.shape() == like.shape && x.dtype() == like.dtype; });
  if (is_same) return;
  const size_t count = made_.size();
  made_.clear();
  RL_CHECK(false, "checkpoint", "backward: the function saved ", hidden_.size(), " tensors, and ", count,
           " or others when it ran again; expected it to do the same each time");
}

}  // namespace rooflab::autograd
