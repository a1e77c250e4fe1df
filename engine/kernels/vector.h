#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/base/bfloat16.h"

// How kernels use the vector units of the processor they meet: a function marked PT_CLONES is
// compiled once for each level below and the loader picks one, so the module starts on any x86-64.
// What it calls must be inlined (PT_INLINE), or it stays at the lowest level. No clones under
// AddressSanitizer: the loader picks before its memory exists.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define PT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PT_CLONES
#endif
#define PT_INLINE inline __attribute__((always_inline))

// PT_KERNEL(name, Args): the clones of name(const Args<T>&), for float and double, from the
// template name_body.
#define PT_KERNEL(name, Args)                                         \
  PT_CLONES void name(const Args<float>& args) { name##_body(args); } \
  PT_CLONES void name(const Args<double>& args) { name##_body(args); }

// The same of name(const Args<T, N>&), where T is what numbers of the compute dtype N are added up
// in.
#define PT_COMPUTE_KERNEL(name, Args)                                          \
  PT_CLONES void name(const Args<float, float>& args) { name##_body(args); }   \
  PT_CLONES void name(const Args<double, double>& args) { name##_body(args); } \
  PT_CLONES void name(const Args<float, BFloat16>& args) { name##_body(args); }

namespace ptrain::kernels {

// e^x within 2 ulp, 0 below e^-87, in a form that loops vectorise: x = n ln 2 + r, a Taylor
// polynomial in |r| < 0.35 (its rest is under 6e-9), times 2^n.
PT_INLINE float exponential(float x) {
  constexpr float kLog2E = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  // Adding it leaves a whole number in a float's lowest bits.
  constexpr float kWhole = 12582912.0f;  // 1.5 * 2^23
  const float low = x < -87.6f ? -87.6f : x;
  const float clamped = low > 89.0f ? 89.0f : low;
  const float shifted = clamped * kLog2E + kWhole;
  const float whole = shifted - kWhole;
  const float r = (clamped - whole * kLn2High) - whole * kLn2Low;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  // 2^(n - 1), of which n = 128 exists and n = -126 is 0.
  const auto power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 126u) << 23);
  return (p + p) * power;
}

PT_INLINE double exponential(double x) { return std::exp(x); }

// Within some 1e-7 (double: 2e-16) of the truth everywhere, not relative to it near 0.
template <class T>
PT_INLINE T hyperbolic_tangent(T x) {
  return T{1} - T{2} / (exponential(T{2} * x) + T{1});
}

}  // namespace ptrain::kernels
