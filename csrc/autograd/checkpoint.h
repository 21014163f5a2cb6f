// Checkpoints: a part of a graph whose nodes keep only what is in memory anyway. Everything else that they would save
// is recomputed when the backward pass first needs it (Chen et al., 2016, arxiv.org/abs/1604.06174).
//
//   auto checkpoint = std::make_shared<Checkpoint>(inputs, [=] { function(inputs); });
//   {
//     const Checkpoint::Scope scope(checkpoint);
//     y = function(inputs);
//   }
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "autograd/draws.h"
#include "autograd/reads.h"
#include "autograd/tape.h"

namespace rooflab::autograd {

class Checkpoint : public std::enable_shared_from_this<Checkpoint> {
 public:
  // `again` runs the function once more, on the same inputs, and drops its results.
  Checkpoint(const Tensors& inputs, std::function<void()> again);

  // Whatever this thread records while a scope lives belongs to the checkpoint.
  class Scope {
   public:
    // What it reads must be the same each time, and it draws the same random numbers. `made` gets what the function
    // saves when it runs again; null while it runs first.
    explicit Scope(std::shared_ptr<Checkpoint> checkpoint, Tensors* made = nullptr);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    void check_all_drawn() const { draws_.check_all_drawn(); }

   private:
    std::shared_ptr<Checkpoint> outer_;
    Tensors* outer_made_;
    ReadScope reads_;
    DrawScope draws_;
  };

  // Takes from a node that was just recorded what the checkpoint of this thread, if there is one, can recompute.
  // `saved` are the tensors as they were given, with their places in the graph.
  static void enter(Node& node, std::span<const Ref> saved);

  // The checkpoint that a node belongs to; null where there is none.
  static const Checkpoint* of(const Node& node);
  const std::vector<Saved>& inputs() const { return inputs_; }

 private:
  struct Rule;
  struct Like {
    Shape shape;
    DType dtype;
  };

  bool can_make(const Ref& given) const;
  void hide(Node& node, std::span<const Ref> saved);
  void collect(std::span<const Ref> saved, Tensors& made) const;
  Tensor take(size_t place);
  Tensors run_again();

  std::vector<Saved> inputs_;
  std::function<void()> again_;
  Reads reads_;
  std::vector<Draw> draws_;   // of the first run
  std::vector<Like> hidden_;  // what nodes would have saved, in the order of recording
  Tensors made_;              // the same, recomputed, under a lock; not defined() once a node has taken it
};

}  // namespace rooflab::autograd
