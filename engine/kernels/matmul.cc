#include "engine/kernels/matmul.h"

#include "engine/base/engine_error.h"

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
}

namespace ptrain::kernels {
namespace {

constexpr auto* gemm(float) { return sgemm_64_; }
constexpr auto* gemm(double) { return dgemm_64_; }

}  // namespace

// Fortran reads our rows as columns, so it sees every matrix transposed: c^T = b^T a^T.
void matmul(const Tensor& a, const Tensor& b, const Tensor& c, MatmulOptions options) {
  const std::int64_t inner = options.transpose_a ? a.rows : a.cols;
  PT_CHECK((options.transpose_a ? a.cols : a.rows) == c.rows);
  PT_CHECK((options.transpose_b ? b.rows : b.cols) == c.cols);
  PT_CHECK((options.transpose_b ? b.cols : b.rows) == inner);
  PT_CHECK(a.dtype == c.dtype && b.dtype == c.dtype);
  const char first = options.transpose_b ? 'T' : 'N';
  const char second = options.transpose_a ? 'T' : 'N';
  dispatch(c.dtype, [&]<class T>(T) {
    const T alpha = 1, beta = options.accumulate ? T{1} : T{0};
    gemm(T{})(&first, &second, &c.cols, &c.rows, &inner, &alpha, b.as<T>(), &b.stride, a.as<T>(),
              &a.stride, &beta, c.as<T>(), &c.stride);
  });
}

}  // namespace ptrain::kernels
