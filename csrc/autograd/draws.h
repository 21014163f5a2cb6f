// The random numbers that a function draws while it runs. When it runs again it gets the same ones: from the places
// that it drew from at first, whatever this thread or others have drawn since.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/tensor.h"

namespace rooflab::autograd {

// The place of one draw in a sequence.
struct Draw {
  uint64_t seed, stream;
  std::shared_ptr<Storage> advance;  // of a graph: what its replays add to the stream, one int64
};

// While it lives, draws of this thread are noted, or replaced by those that were noted. Scopes nest: what is drawn
// inside one is noted in those around it as well, but not beyond a function that runs again.
class DrawScope {
 public:
  enum Run { kFirst, kAgain };
  DrawScope(std::vector<Draw>& draws, Run run);
  ~DrawScope();
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;

  void check_all_drawn() const;  // of a function that has run again; ValueError

 private:
  friend Draw drawn(const std::function<Draw()>& next);
  static DrawScope* again();  // the innermost of this thread that replaces draws
  friend bool draws_again();
  const Draw& take();

  std::vector<Draw>& draws_;
  const Run run_;
  size_t taken_ = 0;
  DrawScope* const outer_;
};

// Where to draw from: next(), unless a function runs again.
Draw drawn(const std::function<Draw()>& next);

// Whether a function runs again in this thread, so that no sequence shall move.
bool draws_again();

}  // namespace rooflab::autograd
