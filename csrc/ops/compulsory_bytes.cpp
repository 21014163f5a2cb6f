// The bytes that an op must read: each byte of its operands' memory once.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/counters.h"
#include "ops/call.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

// The addresses from a tensor's first byte to behind its last one.
struct Span {
  int64_t begin, end;
  int64_t bytes;  // of its elements; of an expanded dimension, which repeats them, only one
  const Tensor* x;

  // Whether two elements may be at one address. Each stride of a tensor that owns its memory reaches over all that the
  // smaller ones reach; those of an array of NumPy need not.
  bool repeats() const {
    std::vector<std::pair<int64_t, int64_t>> steps;
    for (int i = 0; i < x->ndim(); ++i)
      if (x->strides()[i] != 0 && x->shape()[i] != 1) steps.emplace_back(std::abs(x->strides()[i]), x->shape()[i]);
    std::sort(steps.begin(), steps.end());
    int64_t reach = 1;
    for (const auto& [stride, size] : steps) {
      if (stride < reach) return true;
      reach += stride * (size - 1);
    }
    return false;
  }
  // Easily seen: it has no gaps, or the same ones.
  bool holds(const Span& other) const {
    if (begin > other.begin || other.end > end) return false;
    return bytes == end - begin || (x->data() == other.x->data() && x->shape() == other.x->shape() &&
                                    x->strides() == other.x->strides() && x->dtype() == other.x->dtype());
  }
};

int64_t bytes_of(const Tensor& x) {
  int64_t bytes = size_of(x.dtype());
  for (int i = 0; i < x.ndim(); ++i)
    if (x.strides()[i] != 0) bytes *= x.shape()[i];
  return bytes;
}

Span span_of(const Tensor& x) {
  const int64_t item = size_of(x.dtype());
  Span span{reinterpret_cast<intptr_t>(x.data()), 0, bytes_of(x), &x};
  span.end = span.begin + item;
  for (int i = 0; i < x.ndim(); ++i) {
    const int64_t reach = (x.shape()[i] - 1) * x.strides()[i] * item;
    (reach < 0 ? span.begin : span.end) += reach;
  }
  return span;
}

// Whether each has a storage of its own, and none that another library owns: two storages may be of its memory. Mostly
// that is so, and they are few; of more, each pair would take longer.
bool are_apart(const Tensors& operands) {
  constexpr size_t kFew = 4;
  if (operands.size() > kFew) return false;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].defined()) continue;
    if (operands[i].storage()->is_wrapped()) return false;
    for (size_t k = 0; k < i; ++k)
      if (operands[i].storage() == operands[k].storage()) return false;
  }
  return true;
}

// Where to compare addresses: without memory they are names that may recur, so only in one storage.
const Storage* place_of(const Span& span) { return span.x->device().is_meta() ? span.x->storage().get() : nullptr; }

using Interval = std::pair<int64_t, int64_t>;  // [first, second)
using Box = std::vector<Interval>;             // one for each stride

// The strides of a tensor in bytes, ascending, each with its size; the bytes of an element are the innermost dimension.
struct Footing {
  int64_t begin;  // the lowest address
  std::vector<std::pair<int64_t, int64_t>> steps;

  explicit Footing(const Span& span) : begin(span.begin) {
    const Tensor& x = *span.x;
    const int64_t item = size_of(x.dtype());
    std::vector<std::pair<int64_t, int64_t>> all{{1, item}};
    for (int i = 0; i < x.ndim(); ++i)
      if (x.strides()[i] != 0 && x.shape()[i] != 1) all.emplace_back(std::abs(x.strides()[i]) * item, x.shape()[i]);
    std::sort(all.begin(), all.end());
    for (const auto& [stride, size] : all) {
      if (!steps.empty() && steps.back().first == stride)
        steps.back().second += size - 1;
      else if (!steps.empty() && steps.back().first * steps.back().second == stride)
        steps.back().second *= size;  // no gap between the two
      else
        steps.emplace_back(stride, size);
    }
  }
  bool operator==(const Footing&) const = default;
  bool operator<(const Footing& other) const { return std::tie(begin, steps) < std::tie(other.begin, other.steps); }
};

// Footings as boxes: an address is written in digits, one for each stride that occurs, as a time is in hours, minutes
// and seconds. What is in several footings is then in several boxes.
class Boxes {
 public:
  explicit Boxes(const std::vector<Footing>& footings)
      : base_(footings.front().begin), steps_left_((1 << 16) + 256 * static_cast<int64_t>(footings.size())) {
    for (const Footing& x : footings)
      for (const auto& [stride, size] : x.steps) strides_.push_back(stride);
    std::sort(strides_.begin(), strides_.end());
    strides_.erase(std::unique(strides_.begin(), strides_.end()), strides_.end());
  }

  // False if its digits carry from one stride to another that is no multiple of it, or into many boxes.
  bool add(const Footing& x) {
    std::vector<Interval> digits(strides_.size());
    int64_t rest = x.begin - base_;
    for (size_t i = strides_.size(); i-- > 0; rest %= strides_[i]) {
      const int64_t digit = rest / strides_[i];
      digits[i] = {digit, digit + 1};
    }
    for (size_t i = 0, k = 0; i < strides_.size() && k < x.steps.size(); ++i)
      if (x.steps[k].first == strides_[i]) digits[i].second += x.steps[k++].second - 1;
    Box box(strides_.size());
    return split(digits, 0, {0, 1}, 0, box);
  }

  // The number of bytes in them; none if that would take long.
  std::optional<int64_t> bytes() {
    for (size_t digit = strides_.size(); digit-- > 0;) merge(digit);
    std::vector<const Box*> all;
    for (const Box& box : boxes_) all.push_back(&box);
    const int64_t found = bytes_in(std::move(all), strides_.size());
    return steps_left_ < 0 ? std::nullopt : std::optional(found);
  }

 private:
  // Sets the digits from the `i`th on, to which `carry` is added; the digits below make at most `below`.
  bool split(const std::vector<Interval>& digits, size_t i, Interval carry, int64_t below, Box& box) {
    const int64_t first = digits[i].first + carry.first, last = digits[i].second + carry.second - 2;
    const auto go_on = [&](int64_t from, int64_t to, Interval carried) {
      box[i] = {from, to + 1};
      return split(digits, i + 1, carried, below + to * strides_[i], box);
    };
    if (i + 1 == strides_.size()) {
      if (--steps_left_ < 0) return false;
      box[i] = {first, last + 1};
      boxes_.push_back(box);
      return true;
    }
    if (strides_[i + 1] % strides_[i] != 0)
      return below + last * strides_[i] < strides_[i + 1] && go_on(first, last, {0, 1});
    const int64_t radix = strides_[i + 1] / strides_[i];
    int64_t row = first / radix, end = last / radix;
    if (row == end) return go_on(first % radix, last % radix, {row, row + 1});
    if (first % radix != 0) {
      if (!go_on(first % radix, radix - 1, {row, row + 1})) return false;
      ++row;
    }
    if (last % radix != radix - 1) {
      if (!go_on(0, last % radix, {end, end + 1})) return false;
      --end;
    }
    return row > end || go_on(0, radix - 1, {row, end + 1});
  }

  // Makes one box of those that are alike in all other digits and meet in this one.
  void merge(size_t digit) {
    const auto alike_first = [digit](const Box& a, const Box& b) {
      for (size_t i = 0; i < a.size(); ++i)
        if (i != digit && a[i] != b[i]) return a[i] < b[i];
      return a[digit] < b[digit];
    };
    std::sort(boxes_.begin(), boxes_.end(), alike_first);
    const auto meet = [digit](const Box& a, const Box& b) {
      for (size_t i = 0; i < a.size(); ++i)
        if (i != digit && a[i] != b[i]) return false;
      return b[digit].first <= a[digit].second;
    };
    size_t kept = 0;
    for (size_t k = 1; k < boxes_.size(); ++k) {
      if (meet(boxes_[kept], boxes_[k]))
        boxes_[kept][digit].second = std::max(boxes_[kept][digit].second, boxes_[k][digit].second);
      else
        std::swap(boxes_[++kept], boxes_[k]);
    }
    boxes_.resize(kept + 1);
  }

  // How many addresses the boxes hold, of the digits before the `count`th.
  int64_t bytes_in(std::vector<const Box*> boxes, size_t count) {
    int64_t found = 0;
    if (boxes.size() == 1) {
      found = 1;
      for (size_t i = 0; i < count; ++i) found *= (*boxes[0])[i].second - (*boxes[0])[i].first;
      return found;
    }
    const size_t digit = count - 1;
    if (digit == 0) {
      std::sort(boxes.begin(), boxes.end(), [](const Box* a, const Box* b) { return (*a)[0] < (*b)[0]; });
      int64_t covered = 0;
      for (const Box* box : boxes) {
        const auto [first, second] = (*box)[0];
        found += std::max<int64_t>(second - std::max(first, covered), 0);
        covered = std::max(covered, second);
      }
      return found;
    }
    std::vector<int64_t> cuts;
    for (const Box* box : boxes) cuts.insert(cuts.end(), {(*box)[digit].first, (*box)[digit].second});
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::sort(boxes.begin(), boxes.end(), [&](const Box* a, const Box* b) { return (*a)[digit] < (*b)[digit]; });
    std::vector<const Box*> inside;
    for (size_t i = 0, next = 0; i + 1 < cuts.size(); ++i) {
      std::erase_if(inside, [&](const Box* box) { return (*box)[digit].second <= cuts[i]; });
      while (next < boxes.size() && (*boxes[next])[digit].first == cuts[i]) inside.push_back(boxes[next++]);
      if ((steps_left_ -= static_cast<int64_t>(inside.size())) < 0) return 0;
      if (!inside.empty()) found += (cuts[i + 1] - cuts[i]) * bytes_in(inside, digit);
    }
    return found;
  }

  int64_t base_;
  std::vector<int64_t> strides_;
  std::vector<Box> boxes_;
  int64_t steps_left_;
};

// Whether anybody hears of the cost, now or when what is recorded runs.
bool is_heard() { return detail::observers || capture_log() || PrivateCounter::current() || Trace::current(); }

// The distinct bytes of tensors whose spans meet, by address. Where boxes cannot tell, an upper bound.
int64_t distinct_bytes(const Span* first, const Span* last) {
  std::vector<Footing> footings;
  int64_t end = 0, sum = 0;
  for (const Span* x = first; x != last; ++x) {
    footings.emplace_back(*x);
    end = std::max(end, x->end);
  }
  std::sort(footings.begin(), footings.end());
  footings.erase(std::unique(footings.begin(), footings.end()), footings.end());
  Boxes boxes(footings);
  if (is_heard() && std::all_of(footings.begin(), footings.end(), [&](const Footing& x) { return boxes.add(x); }))
    if (const std::optional<int64_t> bytes = boxes.bytes()) return *bytes;
  for (const Footing& x : footings) {
    int64_t bytes = 1;
    for (const auto& [stride, size] : x.steps) bytes *= size;
    sum += bytes;
  }
  return std::min(sum, end - footings.front().begin);
}

}  // namespace

int64_t compulsory_bytes(const Tensors& operands) {
  if (are_apart(operands)) [[likely]]
    return std::transform_reduce(operands.begin(), operands.end(), int64_t{0}, std::plus<>{},
                                 [](const Tensor& x) { return x.defined() && x.numel() > 0 ? bytes_of(x) : 0; });
  std::vector<Span> spans;
  spans.reserve(operands.size());
  for (const Tensor& x : operands)
    if (x.defined() && x.numel() > 0) spans.push_back(span_of(x));
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::make_tuple(place_of(a), a.begin, -a.bytes) < std::make_tuple(place_of(b), b.begin, -b.bytes);
  });
  int64_t bytes = 0;
  for (size_t first = 0, last = 0; first < spans.size(); first = last) {
    const Span& own = spans[first];
    int64_t end = own.end;
    bool is_one = !own.repeats();  // the first holds the others
    for (last = first + 1; last < spans.size() && place_of(spans[last]) == place_of(own) && spans[last].begin < end;
         ++last) {
      is_one &= own.holds(spans[last]);
      end = std::max(end, spans[last].end);
    }
    bytes += is_one ? own.bytes : distinct_bytes(&own, &own + (last - first));
  }
  return bytes;
}

}  // namespace rooflab
