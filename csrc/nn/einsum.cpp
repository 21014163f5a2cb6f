// einsum: operands are combined from the left, two at a time. Each step is one matrix product, or one multiplication
// where nothing is summed.
#include <algorithm>
#include <optional>
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

// Stands in a term for all dimensions that "..." covers.
constexpr char kEllipsis = '.';

// The character that begins there, with all its bytes in UTF-8.
std::string_view character_at(std::string_view text, size_t begin) {
  size_t end = begin + 1;
  while (end < text.size() && (text[end] & 0xC0) == 0x80) ++end;
  return text.substr(begin, end - begin);
}

// The letters of one term, spaces left out.
std::string parse_term(std::string_view term, std::string_view equation) {
  std::string letters;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == ' ') continue;
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_ellipsis = term.substr(i, 3) == "...";
    RL_CHECK(is_letter || is_ellipsis, "einsum", "equation: expected letters, '...', ',' and one '->', got '",
             character_at(term, i), "' in \"", equation, "\"");
    RL_CHECK(is_letter || !has(letters, kEllipsis), "einsum", "equation: expected '...' once in a term, got \"",
             equation, "\"");
    letters += is_letter ? c : kEllipsis;
    if (is_ellipsis) i += 2;
  }
  return letters;
}

struct Equation {
  std::vector<std::string> inputs;
  std::optional<std::string> output;
};

// "ik,kj->ij" as {"ik", "kj"} and "ij".
Equation parse(std::string_view equation, size_t operands) {
  RL_CHECK(equation.find('\0') == equation.npos, "einsum",
           "equation: expected letters, '...', ',' and one '->', got the character of code 0");
  Equation parsed;
  const size_t arrow = equation.find("->");
  std::string_view left = equation.substr(0, arrow);
  for (size_t comma; (comma = left.find(',')) != left.npos; left.remove_prefix(comma + 1))
    parsed.inputs.push_back(parse_term(left.substr(0, comma), equation));
  parsed.inputs.push_back(parse_term(left, equation));
  RL_CHECK(parsed.inputs.size() == operands, "einsum", "equation: expected a term for each of ", operands,
           " operands, got ", parsed.inputs.size(), " in \"", equation, "\"");
  if (arrow == equation.npos) return parsed;
  parsed.output = parse_term(equation.substr(arrow + 2), equation);
  for (char c : *parsed.output) {
    RL_CHECK(std::count(parsed.output->begin(), parsed.output->end(), c) == 1, "einsum", "equation: expected '", c,
             "' once after '->', got \"", equation, "\"");
    RL_CHECK(c == kEllipsis || std::any_of(parsed.inputs.begin(), parsed.inputs.end(),
                                           [&](const std::string& letters) { return has(letters, c); }),
             "einsum", "equation: expected letters of an operand after '->', got '", c, "' in \"", equation, "\"");
  }
  return parsed;
}

// Without an arrow the result has what "..." covers, and then the letters that appear once, in order.
std::string implied_output(const std::vector<std::string>& inputs) {
  std::string all, once;
  for (const std::string& letters : inputs) all += letters;
  once = those(all, [&](char c) { return c != kEllipsis && std::count(all.begin(), all.end(), c) == 1; });
  std::sort(once.begin(), once.end());
  return kEllipsis + once;
}

// The letters of the last `count` dimensions that "..." covers. They are no letters that an equation can have.
std::string covered(int count) {
  std::string letters;
  for (int i = count; i > 0; --i) letters += static_cast<char>(i);
  return letters;
}

std::string with_covered(std::string letters, int count) {
  if (const size_t at = letters.find(kEllipsis); at != letters.npos) letters.replace(at, 1, covered(count));
  return letters;
}

// The diagonal of the dimensions that have one letter.
Term without_repeats(Term term) {
  for (size_t i = 0; i < term.letters.size(); ++i)
    for (size_t j; (j = term.letters.find(term.letters[i], i + 1)) != std::string::npos; term.letters.erase(j, 1))
      term.x = diagonal(term.x, static_cast<int>(i), static_cast<int>(j));
  return term;
}

// The operands with a letter for each of their dimensions. Where "..." covers a size of 1 that others broadcast, the
// dimension is left out.
std::vector<Term> terms_of(const std::vector<std::string>& inputs, const Tensors& operands, int most_covered) {
  std::vector<Term> terms;
  int64_t sizes[128];
  std::fill_n(sizes, 128, -1);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor& x = operands[i];
    const int own = static_cast<int>(inputs[i].size()) - has(inputs[i], kEllipsis);
    const std::string letters = with_covered(inputs[i], x.ndim() - own);
    for (int d = 0; d < x.ndim(); ++d) {
      const char letter = letters[static_cast<size_t>(d)];
      int64_t& size = sizes[static_cast<int>(letter)];
      const bool is_covered = letter <= most_covered, broadcasts = is_covered && (size == 1 || x.shape()[d] == 1);
      RL_CHECK(size < 0 || size == x.shape()[d] || broadcasts, "einsum", "operand ", i, ": expected ",
               is_covered ? std::string("a size in '...'") : std::string(1, letter), "=", size, ", got ", x.shape());
      if (size < 0 || size == 1) size = x.shape()[d];
    }
    terms.push_back({x, letters});
  }
  for (Term& term : terms) {
    for (int d = term.x.ndim() - 1; d >= 0; --d) {
      const char letter = term.letters[static_cast<size_t>(d)];
      if (letter > most_covered || term.x.shape()[d] == sizes[static_cast<int>(letter)]) continue;
      term.x = squeeze(term.x, d);
      term.letters.erase(static_cast<size_t>(d), 1);
    }
    term = without_repeats(std::move(term));
  }
  return terms;
}

}  // namespace

Tensor einsum(std::string_view equation, const Tensors& operands) {
  RL_CHECK(!operands.empty(), "einsum", "operands: expected at least one, got none");
  const Equation parsed = parse(equation, operands.size());
  int most_covered = 0;  // by "..." in one operand
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string& letters = parsed.inputs[i];
    const bool has_ellipsis = has(letters, kEllipsis);
    const int rest = operands[i].ndim() - static_cast<int>(letters.size()) + has_ellipsis;
    RL_CHECK(has_ellipsis ? rest >= 0 : rest == 0, "einsum", "operand ", i, ": expected ",
             letters.size() - has_ellipsis, " dimensions ", has_ellipsis ? "or more (" : "(",
             those(letters, [](char c) { return c != kEllipsis; }), "), got ", operands[i].shape());
    most_covered = std::max(most_covered, rest);
  }
  const std::string shown = parsed.output.value_or(implied_output(parsed.inputs));
  RL_CHECK(most_covered == 0 || has(shown, kEllipsis), "einsum", "equation: expected '...' after '->' too, got \"",
           equation, "\"");
  const std::string output = with_covered(shown, most_covered);
  const std::vector<Term> terms = terms_of(parsed.inputs, operands, most_covered);
  Term folded = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string needed = output;
    for (size_t j = i + 1; j < terms.size(); ++j) needed += terms[j].letters;
    folded = product(folded, terms[i], needed);
  }
  return ordered(summed(folded, output), output).x;
}

}  // namespace rooflab::nn
