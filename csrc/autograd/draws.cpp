#include "autograd/draws.h"

#include <utility>

#include "core/context.h"

namespace rooflab::autograd {

DrawScope::DrawScope(std::vector<Draw>& draws, Run run)
    : draws_(draws), run_(run), outer_(std::exchange(context().draws, this)) {}

DrawScope::~DrawScope() { context().draws = outer_; }

DrawScope* DrawScope::again() {
  DrawScope* scope = context().draws;
  while (scope && scope->run_ == kFirst) scope = scope->outer_;
  return scope;
}

const Draw& DrawScope::take() {
  RL_CHECK(taken_ < draws_.size(), "checkpoint", "backward: the function drew random numbers ", draws_.size(),
           " times, and more often when it ran again; expected it to do the same each time");
  return draws_[taken_++];
}

void DrawScope::check_all_drawn() const {
  RL_CHECK(taken_ == draws_.size(), "checkpoint", "backward: the function drew random numbers ", draws_.size(),
           " times, and ", taken_, " times when it ran again; expected it to do the same each time");
}

Draw drawn(const std::function<Draw()>& next) {
  if (!context().draws) return next();
  DrawScope* const again = DrawScope::again();
  const Draw draw = again ? again->take() : next();
  for (DrawScope* scope = context().draws; scope != again; scope = scope->outer_) scope->draws_.push_back(draw);
  return draw;
}

bool draws_again() { return DrawScope::again() != nullptr; }

}  // namespace rooflab::autograd
