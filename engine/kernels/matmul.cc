#include "engine/base/bfloat16.h"
#include "engine/kernels/matmul_inner.h"
#include "engine/kernels/own_gemm.h"

// Fortran's GEMM with 64-bit integers, which libtorch_cpu exports from the MKL inside it.
extern "C" {
void sgemm_64_(const char* transpose_a, const char* transpose_b, const std::int64_t* m,
               const std::int64_t* n, const std::int64_t* k, const float* alpha, const float* a,
               const std::int64_t* lda, const float* b, const std::int64_t* ldb, const float* beta,
               float* c, const std::int64_t* ldc);
void dgemm_64_(const char* transpose_a, const char* transpose_b, const std::int64_t* m,
               const std::int64_t* n, const std::int64_t* k, const double* alpha, const double* a,
               const std::int64_t* lda, const double* b, const std::int64_t* ldb,
               const double* beta, double* c, const std::int64_t* ldc);
void gemm_bf16bf16f32_64_(const char* transpose_a, const char* transpose_b, const std::int64_t* m,
                          const std::int64_t* n, const std::int64_t* k, const float* alpha,
                          const ptrain::BFloat16* a, const std::int64_t* lda,
                          const ptrain::BFloat16* b, const std::int64_t* ldb, const float* beta,
                          float* c, const std::int64_t* ldc);
}

namespace ptrain::kernels {
namespace {

constexpr auto* gemm(float, float) { return sgemm_64_; }
constexpr auto* gemm(double, double) { return dgemm_64_; }
constexpr auto* gemm(BFloat16, float) { return gemm_bf16bf16f32_64_; }

struct Orientation {
  char first, second;
  std::int64_t inner;
};

template <class In, class Out>
void multiply(const Tensor& a, const Tensor& b, const Tensor& c, const Orientation& o,
              bool accumulate) {
  const Out alpha = 1, beta = accumulate ? Out{1} : Out{0};
  gemm(In{}, Out{})(&o.first, &o.second, &c.cols, &c.rows, &o.inner, &alpha, b.as<In>(), &b.stride,
                    a.as<In>(), &a.stride, &beta, c.as<Out>(), &c.stride);
}

}  // namespace

// Fortran reads our rows as columns, so it sees every matrix transposed: c^T = b^T a^T.
void matmul(const Tensor& a, const Tensor& b, const Tensor& c, MatmulOptions options) {
  if (uses_own_gemm(a, c, options)) return own_gemm(a, b, c, options);
  const Orientation orientation{options.transpose_b ? 'T' : 'N', options.transpose_a ? 'T' : 'N',
                                checked_inner(a, b, c, options)};
  if (a.dtype == DType::kBFloat16)
    return multiply<BFloat16, float>(a, b, c, orientation, options.accumulate);
  dispatch(c.dtype, [&]<class T>(T) { multiply<T, T>(a, b, c, orientation, options.accumulate); });
}

}  // namespace ptrain::kernels
