// einsum: operands are combined from the left, two at a time. Each step is one matrix product, or one multiplication
// where nothing is summed.
#include <algorithm>
#include <string>

#include "nn/nn.h"
#include "ops/arithmetic.h"

namespace rooflab::nn {
namespace {

// A tensor whose dimensions have letters.
struct Term {
  Tensor x;
  std::string letters;
};

bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

// The letters of `a` for which `keep` holds, in the order of `a`.
template <class Keep>
std::string those(const std::string& a, Keep keep) {
  std::string kept;
  std::copy_if(a.begin(), a.end(), std::back_inserter(kept), keep);
  return kept;
}

int64_t size_of_letters(const Term& term, const std::string& letters) {
  int64_t size = 1;
  for (char letter : letters) size *= term.x.size(static_cast<int64_t>(term.letters.find(letter)));
  return size;
}

// The term with its dimensions in the order of `letters`, all of which it has.
Term ordered(const Term& term, const std::string& letters) {
  if (term.letters == letters) return term;
  Shape dims;
  for (char letter : letters) dims.push_back(static_cast<int64_t>(term.letters.find(letter)));
  return {permute(term.x, dims), letters};
}

// The term summed over the letters that are not in `needed`.
Term summed(const Term& term, const std::string& needed) {
  Shape dims;
  for (size_t i = 0; i < term.letters.size(); ++i)
    if (!has(needed, term.letters[i])) dims.push_back(static_cast<int64_t>(i));
  if (dims.empty()) return term;
  return {sum(term.x, dims, false), those(term.letters, [&](char c) { return has(needed, c); })};
}

// The product of two terms, summed over the letters that are not in `needed`.
Term product(Term a, Term b, const std::string& needed) {
  a = summed(a, needed + b.letters);
  b = summed(b, needed + a.letters);
  const auto in_both = [&](char c) { return has(a.letters, c) && has(b.letters, c); };
  const std::string batch = those(a.letters, [&](char c) { return in_both(c) && has(needed, c); });
  const std::string over = those(a.letters, [&](char c) { return in_both(c) && !has(needed, c); });
  const std::string rows = those(a.letters, [&](char c) { return !in_both(c); });
  const std::string columns = those(b.letters, [&](char c) { return !in_both(c); });
  const std::string letters = batch + rows + columns;
  Shape shape;
  for (char letter : letters) {
    const Term& from = has(a.letters, letter) ? a : b;
    shape.push_back(from.x.size(static_cast<int64_t>(from.letters.find(letter))));
  }
  const int64_t batches = size_of_letters(a, batch), m = size_of_letters(a, rows), n = size_of_letters(b, columns);
  const Tensor left = ordered(a, batch + rows + over).x, right = ordered(b, batch + over + columns).x;
  const int64_t k = size_of_letters(a, over);
  const Tensor matrices = over.empty() ? reshape(left, {batches, m, 1}) * reshape(right, {batches, 1, n})
                                       : matmul(reshape(left, {batches, m, k}), reshape(right, {batches, k, n}));
  return {reshape(matrices, shape), letters};
}

// "ik,kj->ij" as {"ik", "kj"} and "ij". Without an arrow the result has the letters that appear once, in order.
std::pair<std::vector<std::string>, std::string> parse(std::string_view equation, size_t operands) {
  std::vector<std::string> inputs(1);
  std::string output, counted;
  bool has_arrow = false;
  for (size_t i = 0; i < equation.size(); ++i) {
    const char c = equation[i];
    if (c == ' ') continue;
    if (c == '-' && i + 1 < equation.size() && equation[i + 1] == '>' && !has_arrow) {
      has_arrow = true;
      ++i;
    } else if (c == ',' && !has_arrow) {
      inputs.emplace_back();
    } else {
      RL_CHECK((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), "einsum",
               "equation: expected letters, ',' and one '->', got '", c, "' in \"", equation, "\"");
      std::string& term = has_arrow ? output : inputs.back();
      RL_CHECK(!has(term, c), "einsum", "equation: expected '", c, "' once in a term, got \"", equation, "\"");
      term += c;
      if (!has_arrow) counted += c;
    }
  }
  RL_CHECK(inputs.size() == operands, "einsum", "equation: expected a term for each of ", operands, " operands, got ",
           inputs.size(), " in \"", equation, "\"");
  if (!has_arrow) {
    output = those(counted, [&](char c) { return std::count(counted.begin(), counted.end(), c) == 1; });
    std::sort(output.begin(), output.end());
  }
  for (char c : output)
    RL_CHECK(has(counted, c), "einsum", "equation: expected letters of an operand after '->', got '", c, "' in \"",
             equation, "\"");
  return {inputs, output};
}

}  // namespace

Tensor einsum(std::string_view equation, const Tensors& operands) {
  RL_CHECK(!operands.empty(), "einsum", "operands: expected at least one, got none");
  const auto [letters, output] = parse(equation, operands.size());
  std::vector<Term> terms;
  int64_t sizes[128];
  std::fill_n(sizes, 128, -1);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor& x = operands[i];
    RL_CHECK(static_cast<size_t>(x.ndim()) == letters[i].size(), "einsum", "operand ", i, ": expected ",
             letters[i].size(), " dimensions (", letters[i], "), got ", x.shape());
    for (int d = 0; d < x.ndim(); ++d) {
      int64_t& size = sizes[static_cast<int>(letters[i][static_cast<size_t>(d)])];
      RL_CHECK(size < 0 || size == x.shape()[d], "einsum", "operand ", i, ": expected ",
               letters[i][static_cast<size_t>(d)], "=", size, ", got ", x.shape());
      size = x.shape()[d];
    }
    terms.push_back({x, letters[i]});
  }
  Term folded = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string needed = output;
    for (size_t j = i + 1; j < terms.size(); ++j) needed += terms[j].letters;
    folded = product(folded, terms[i], needed);
  }
  return ordered(summed(folded, output), output).x;
}

}  // namespace rooflab::nn
