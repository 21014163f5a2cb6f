// What a function reads while it runs. A function that runs again can give what it gave only if it reads the same:
// tensors that are older than its run must be those that it read at first, and must not have changed.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "core/tensor.h"

namespace rooflab::autograd {

// What the first run read. It keeps no memory of tensors alive.
class Reads {
 public:
  Reads() = default;
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;

 private:
  friend class ReadScope;
  struct Read {
    std::weak_ptr<Storage> storage;
    Version version;
  };

  std::unordered_map<const Storage*, Read> first_;
  int64_t begin_ = 0, end_ = INT64_MAX;  // numbers of storages: those of the first run lie between
};

// While it lives, what this thread reads is noted, or compared with what was noted. Scopes nest: what is read inside
// one is read inside those around it as well.
class ReadScope {
 public:
  enum Run { kFirst, kAgain };
  ReadScope(Reads& reads, Run run);
  ~ReadScope();
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;

 private:
  friend void note_read(const Tensor& x);
  friend void note_overwritten(const Tensor& x);
  friend void note_replay(const std::shared_ptr<const Recording>& recording);
  void note(const Tensor& x);
  void check(const Tensor& x) const;

  Reads& reads_;
  const Run run_;
  const int64_t begin_;
  ReadScope* const outer_;
  std::unordered_set<const Storage*> own_;  // older, but what they hold was made by this run
  // What this run replayed, and so filled what was made there.
  std::unordered_map<const Recording*, std::shared_ptr<const Recording>> replayed_;
};

// An op, or the host, is about to read x. ValueError if a function that runs again cannot read there what it read at
// first. Like those below it costs a branch where no function is watched.
void note_read(const Tensor& x);
// An op is about to write all of the memory of x without reading it.
void note_overwritten(const Tensor& x);
// What a capture made is filled again.
void note_replay(const std::shared_ptr<const Recording>& recording);
// `made`, which was computed from x some time ago, is used again: a repeat may compute it anew.
void note_kept(const Tensor& made, const Tensor& x);

}  // namespace rooflab::autograd
