// Which Python objects show the gradients of which leaves.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "bindings/bindings.h"

namespace rooflab {

// The Python objects of gradients that somebody holds, so that w.grad is w.grad, and what is set in it is set in w. No
// call looks at the gradients of other leaves, unless as many are gone as are left.
class ShownGrads {
 public:
  PythonTensor show(const std::shared_ptr<autograd::Meta>& owner, Tensor grad) {
    if (const auto place = all_.find(owner.get()); place != all_.end())
      if (const PythonTensor object = place->second.held(); object && is_one(object.cast<const Tensor&>(), grad))
        return object;
    const PythonTensor object = py::cast(std::move(grad));
    remember(owner, object);
    return object;
  }

  void remember(const std::shared_ptr<autograd::Meta>& owner, const PythonTensor& grad) {
    forget(owner.get());
    if (all_.size() >= limit_) {
      for (auto each = all_.begin(); each != all_.end();)
        if (each->second.held())
          ++each;
        else
          each = erase(each);
      limit_ = 2 * all_.size() + 64;
    }
    all_.emplace(owner.get(), Shown{owner, grad.ptr(), py::weakref(grad, py::handle())});
    leaves_[grad.ptr()].insert(owner.get());
  }

  void forget(const autograd::Meta* owner) {
    if (const auto place = all_.find(owner); place != all_.end()) erase(place);
  }

  // Whose gradient the object is.
  std::vector<std::shared_ptr<autograd::Meta>> owners_of(const PythonTensor& object) {
    std::vector<std::shared_ptr<autograd::Meta>> owners;
    const auto place = leaves_.find(object.ptr());
    if (place == leaves_.end()) return owners;
    const std::unordered_set<const autograd::Meta*> leaves = place->second;
    for (const autograd::Meta* leaf : leaves) {
      const auto entry = all_.find(leaf);
      const std::shared_ptr<autograd::Meta> owner = entry == all_.end() ? nullptr : entry->second.owner.lock();
      if (owner && entry->second.held().is(object) && is_one(object.cast<const Tensor&>(), owner->grad()))
        owners.push_back(owner);
      else
        forget(leaf);
    }
    return owners;
  }

 private:
  struct Shown {
    std::weak_ptr<autograd::Meta> owner;
    const PyObject* address;  // of the object, which may be gone and another there
    py::weakref object;

    PythonTensor held() const {
      const py::object found = owner.expired() ? py::none() : object();
      return found.is_none() ? PythonTensor() : PythonTensor(found);
    }
  };
  using All = std::unordered_map<const autograd::Meta*, Shown>;

  All::iterator erase(All::iterator place) {
    const auto leaves = leaves_.find(place->second.address);
    leaves->second.erase(place->first);
    if (leaves->second.empty()) leaves_.erase(leaves);
    return all_.erase(place);
  }

  All all_;
  std::unordered_map<const PyObject*, std::unordered_set<const autograd::Meta*>> leaves_;  // of all_, by address
  size_t limit_ = 64;  // objects that are gone are dropped when there are as many
};

inline ShownGrads& shown_grads() {
  static auto* const all = new ShownGrads;  // outlives Python's modules
  return *all;
}

}  // namespace rooflab
