// Zipf's distribution: rank k of 1 .. n has a probability proportional to 1 / k^s.
//
// Drawn by rejection-inversion (Hörmann and Derflinger: Rejection-inversion to generate variates from monotone discrete
// distributions, ACM TOMACS 6(3), 1996), which needs neither a table of n sums nor many draws: at most 1.3 on average.
//
// Start at: Zipf. Any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "data_gen/random.h"

namespace tessera {

class Zipf {
 public:
  /// REQUIRES: n >= 1, s >= 0 (0: uniform)
  Zipf(uint64_t n, double s) : n_(n), s_(s) {
    if (s == 0) return;
    from_ = Integral(1.5) - 1;
    to_ = Integral(static_cast<double>(n) + 0.5);
    accept_ = 2 - Inverse(Integral(2.5) - Density(2));
  }

  /// The rank, from 0.
  uint64_t operator()(RandomRow& random) const {
    if (s_ == 0) return random.Below(n_);
    for (;;) {
      const double u = to_ + random.Unit() * (from_ - to_);
      const double x = Inverse(u);
      const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
      if (k - x <= accept_ || u >= Integral(k + 0.5) - Density(k)) return static_cast<uint64_t>(k) - 1;
    }
  }

 private:
  // H(x), the integral of h(x) = x^-s, is (x^(1-s) - 1) / (1 - s), and log(x) for s = 1. Both come out of
  // expm1(t) / t with t = (1 - s) log(x), which goes to 1 where t does to 0.
  double Density(double x) const { return std::exp(-s_ * std::log(x)); }
  double Integral(double x) const {
    const double log = std::log(x), t = (1 - s_) * log;
    return (std::abs(t) > kSmall ? std::expm1(t) / t : 1 + t / 2) * log;
  }
  double Inverse(double y) const {
    const double t = std::max(y * (1 - s_), -1.0);
    return std::exp((std::abs(t) > kSmall ? std::log1p(t) / t : 1 - t / 2) * y);
  }
  static constexpr double kSmall = 1e-8;

  uint64_t n_;
  double s_;
  double from_ = 0, to_ = 0, accept_ = 0;
};

}  // namespace tessera
