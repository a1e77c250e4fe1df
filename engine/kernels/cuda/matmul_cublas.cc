// In place of the matrix library of the processor.
#include <cublas_v2.h>

#include <string>

#include "engine/base/bfloat16.h"
#include "engine/base/engine_error.h"
#include "engine/kernels/matmul_inner.h"

namespace ptrain::kernels {
namespace {

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw EngineError(ExitCode::kRankError,
                    std::string("cuBLAS: ") + what + " failed: " + cublasGetStatusString(status));
}

// One rank is one process with one GPU and one thread that starts kernels: cuBLAS is opened at its
// first product, on the default stream, and ends with the process.
cublasHandle_t handle() {
  static const cublasHandle_t opened = [] {
    cublasHandle_t result = nullptr;
    check(cublasCreate(&result), "cublasCreate");
    // float32 stays float32: no TF32.
    check(cublasSetMathMode(result, CUBLAS_DEFAULT_MATH), "cublasSetMathMode");
    return result;
  }();
  return opened;
}

template <class T>
struct Kind;
template <>
struct Kind<float> {
  static constexpr cudaDataType_t kData = CUDA_R_32F;
  static constexpr cublasComputeType_t kSums = CUBLAS_COMPUTE_32F;
};
template <>
struct Kind<double> {
  static constexpr cudaDataType_t kData = CUDA_R_64F;
  static constexpr cublasComputeType_t kSums = CUBLAS_COMPUTE_64F;
};
template <>
struct Kind<BFloat16> {
  static constexpr cudaDataType_t kData = CUDA_R_16BF;
};

struct Orientation {
  cublasOperation_t first, second;
  std::int64_t inner;
};

template <class In, class Out>
void multiply(const Tensor& a, const Tensor& b, const Tensor& c, const Orientation& o,
              bool accumulate) {
  const Out alpha = 1, beta = accumulate ? Out{1} : Out{0};
  check(cublasGemmEx_64(handle(), o.first, o.second, c.cols, c.rows, o.inner, &alpha, b.data,
                        Kind<In>::kData, b.stride, a.data, Kind<In>::kData, a.stride, &beta, c.data,
                        Kind<Out>::kData, c.stride, Kind<Out>::kSums, CUBLAS_GEMM_DEFAULT),
        "a matrix product");
}

cublasOperation_t operation(bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

}  // namespace

// cuBLAS reads our rows as columns, so it sees every matrix transposed: c^T = b^T a^T.
void matmul(const Tensor& a, const Tensor& b, const Tensor& c, MatmulOptions options) {
  const Orientation orientation{operation(options.transpose_b), operation(options.transpose_a),
                                checked_inner(a, b, c, options)};
  if (a.dtype == DType::kBFloat16)
    return multiply<BFloat16, float>(a, b, c, orientation, options.accumulate);
  dispatch(c.dtype, [&]<class T>(T) { multiply<T, T>(a, b, c, orientation, options.accumulate); });
}

}  // namespace ptrain::kernels
