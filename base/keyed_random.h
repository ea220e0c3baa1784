// Random numbers that depend only on a key.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

namespace hvdlite::base {

// A stream of random numbers determined by its key, such as {seed, epoch,
// sample}. It is the same on every rank, machine and standard library, and is
// cheap enough to start one per sample. SplitMix64 (Steele, Lea and Flood,
// "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
class KeyedRandom {
 public:
  KeyedRandom(std::initializer_list<uint64_t> key) {
    for (const uint64_t part : key) state_ = Mix(state_ + kGamma + part);
  }

  uint64_t Next() { return Mix(state_ += kGamma); }

  // In [0, limit), limit > 0. (The bias is below limit / 2^64.)
  uint64_t Below(uint64_t limit) { return Next() % limit; }

  // In [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // Normally distributed, mean 0 and variance 1 (Box and Muller).
  double Normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * Uniform());
  }

 private:
  static constexpr uint64_t kGamma = 0x9e3779b97f4a7c15;

  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t state_ = 0;
};

}  // namespace hvdlite::base
