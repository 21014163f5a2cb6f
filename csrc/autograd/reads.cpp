#include "autograd/reads.h"

#include <utility>

#include "core/context.h"

namespace rooflab::autograd {

ReadScope::ReadScope(Reads& reads, Run run)
    : reads_(reads), run_(run), begin_(Storage::made()), outer_(std::exchange(context().reads, this)) {
  if (run_ == kFirst) reads_.begin_ = begin_;
}

ReadScope::~ReadScope() {
  context().reads = outer_;
  if (run_ == kAgain) return;
  reads_.end_ = Storage::made();
  std::erase_if(reads_.first_, [](const auto& read) { return read.second.storage.expired(); });
}

// Of older memory the first version counts, since the run may write to it. Memory of the run itself may outlive it, as
// a table that is made once does: of that the last version counts.
void ReadScope::note(const Tensor& x) {
  const std::shared_ptr<Storage>& storage = x.storage();
  if (own_.contains(storage.get()) || replayed_.contains(storage->recording())) return;
  if (run_ == kAgain) return check(x);
  const Reads::Read read{storage, storage->version()};
  if (storage->number() > begin_)
    reads_.first_.insert_or_assign(storage.get(), read);
  else
    reads_.first_.try_emplace(storage.get(), read);
}

void ReadScope::check(const Tensor& x) const {
  const Storage& storage = *x.storage();
  if (storage.number() > begin_) return;
  const auto found = reads_.first_.find(&storage);
  if (found != reads_.first_.end() && !found->second.storage.expired()) {
    RL_CHECK(storage.is_at(found->second.version), "checkpoint", "backward: a tensor of shape ", x.shape(),
             " that the function reads was changed in place, by the function or since, so it cannot run again on what "
             "it was");
    return;
  }
  RL_CHECK(storage.number() > reads_.begin_ && storage.number() <= reads_.end_, "checkpoint",
           "backward: the function reads another tensor of shape ", x.shape(),
           " than when it ran first; expected it to do the same each time");
}

void note_read(const Tensor& x) {
  if (context().mode.counter) return;
  for (ReadScope* scope = context().reads; scope; scope = scope->outer_) scope->note(x);
}

void note_overwritten(const Tensor& x) {
  if (x.nbytes() != x.storage()->bytes()) return;
  if (context().mode.counter) return;
  for (ReadScope* scope = context().reads; scope; scope = scope->outer_)
    if (x.storage()->number() <= scope->begin_) scope->own_.insert(x.storage().get());
}

void note_replay(const std::shared_ptr<const Recording>& recording) {
  for (ReadScope* scope = context().reads; scope; scope = scope->outer_)
    scope->replayed_.try_emplace(recording.get(), recording);
}

void note_kept(const Tensor& made, const Tensor& x) {
  note_read(x);
  note_overwritten(made);
}

}  // namespace rooflab::autograd
