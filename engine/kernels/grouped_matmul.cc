#include <omp.h>

#include <algorithm>

#include "engine/kernels/matmul_inner.h"

namespace ptrain::kernels {
namespace {

void multiply(const Product& product, MatmulOptions options) {
  options.accumulate = product.accumulate;
  matmul(product.a, product.b, product.c, options);
}

// Checks all operands: nothing may throw once threads have parted.
bool shares_out_well(std::span<const Product> products, MatmulOptions options, int num_threads) {
  std::int64_t largest = 0, sum = 0;
  for (const auto& [a, b, c, accumulate] : products) {
    const std::int64_t size = c.rows * c.cols * checked_inner(a, b, c, options);
    largest = std::max(largest, size);
    sum += size;
  }
  return largest * num_threads <= sum;
}

}  // namespace

void grouped_matmul(std::span<const Product> products, MatmulOptions options) {
  const int num_threads = omp_get_max_threads();
  if (!shares_out_well(products, options, num_threads) || num_threads == 1) {
    for (const Product& product : products) multiply(product, options);
    return;
  }
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < products.size(); ++i) multiply(products[i], options);
}

}  // namespace ptrain::kernels
