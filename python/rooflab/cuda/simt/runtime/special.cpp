// Functions of numbers that CUDA has and the C library lacks, or that would write through a pointer.
#include <cmath>

#include "device/codes.h"

namespace {

// sin or cos of pi x, exact at multiples of a half: of |x| what is left beyond the nearest half.
double of_pi(double x, bool is_cosine) {
  const double reduced = std::fmod(std::fabs(x), 2), halves = std::nearbyint(2 * reduced);
  const double angle = M_PI * (reduced - halves / 2);
  const int quarter = (static_cast<int>(halves) + is_cosine) & 3;
  const double value = quarter & 1 ? std::cos(angle) : std::sin(angle);
  const double made = quarter & 2 ? -value : value;
  return is_cosine || !std::signbit(x) ? made : -made;
}

// Where erfc is q, from 0 to 1, by Newton's method from an approximation. For q near 1 its difference to 1 is given.
double inverse_erfc(double q, double below_one) {
  if (!(q > 0) || below_one == 0) return q == 0 ? INFINITY : below_one == 0 ? 0 : NAN;
  const double logarithm = std::log(q) + std::log1p(below_one), half = 2 / (M_PI * 0.147) + logarithm / 2;
  double t = std::sqrt(std::sqrt(half * half - logarithm / 0.147) - half);
  for (int i = 0; i < 6; ++i) {
    const double error = below_one < 0.5 ? below_one - std::erf(t) : std::erfc(t) - q;
    const double step = error * std::exp(t * t) * std::sqrt(M_PI) / 2;
    t += step / (1 - t * step);
  }
  return t;
}

double erfcinv(double x) { return x <= 1 ? inverse_erfc(x, 1 - x) : -inverse_erfc(2 - x, x - 1); }

}  // namespace

extern "C" double rl_special(int what, double x, double y, double z, double w) {
  int exponent = 0;
  switch (what) {
    case rl_function_sinpi: return of_pi(x, false);
    case rl_function_cospi: return of_pi(x, true);
    case rl_function_norm: return std::hypot(std::hypot(x, y), std::hypot(z, w));
    case rl_function_erfinv: return std::copysign(inverse_erfc(1 - std::fabs(x), std::fabs(x)), x);
    case rl_function_erfcinv: return erfcinv(x);
    case rl_function_normcdfinv: return -M_SQRT2 * erfcinv(2 * x);
    case rl_function_fraction: return std::frexp(x, &exponent);
    case rl_function_exponent: std::frexp(x, &exponent); return exponent;
    default: return x == 0 || x != x ? -2147483648.0 : std::ilogb(x);
  }
}
