#include "engine/kernels/matmul.h"

namespace ptrain::kernels {

// One after the other, as their stream runs them.
void grouped_matmul(std::span<const Product> products, MatmulOptions options) {
  for (const auto& [a, b, c, accumulate] : products)
    matmul(a, b, c, {options.transpose_a, options.transpose_b, accumulate});
}

}  // namespace ptrain::kernels
