// The spread of numbers, from which a variance follows, in two steps: about one of the numbers in each thread, then of
// groups together. It is right where numbers are large and alike, and where one is far from all others.
#pragma once

#include <cmath>

namespace rooflab::kernels {

// What a thread accumulates: distances from one of the numbers, and their squares. They are in
// double, because that number may be far from all others; then most of either sum cancels in the end.
struct Distances {
  double sum, squares;
};
__device__ __forceinline__ Distances operator+(const Distances& a, const Distances& b) {
  return {a.sum + b.sum, a.squares + b.squares};
}

// What threads and blocks fold: how many numbers, their mean, and the squares of their distances from it.
struct Spread {
  double count, mean, squares;
};
// Of two groups of numbers together: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
// computing sample variances", 1979.
__device__ __forceinline__ Spread operator+(const Spread& a, const Spread& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const double count = a.count + b.count, distance = b.mean - a.mean, share = b.count / count;
  return {count, a.mean + distance * share, a.squares + b.squares + distance * distance * (a.count * share)};
}
__device__ __forceinline__ Spread spread_about(double center, const Distances& distances, double count) {
  if (count == 0) return {};
  const double rest = distances.sum / count;
  const bool overflows = isinf(distances.squares) && isfinite(distances.sum);  // then so does the variance
  const double squares = overflows ? distances.squares : distances.squares - distances.sum * rest;
  return {count, center + rest, squares < 0 ? 0 : squares};
}

}  // namespace rooflab::kernels
