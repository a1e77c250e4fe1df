#include "engine/layers/expert_linears.h"

#include <algorithm>

#include "core/program/block_sizes.h"
#include "engine/base/planted.h"
#include "engine/layers/linear.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {
namespace {

using program::kRoundedRows;

// y, of the weights' dtype, by way of `sums`.
void rounded_linear(const Tensor& x, std::span<const Tensor> weights, const Tensor& sums,
                    const Tensor& y) {
  for (std::int64_t begin = 0; begin < y.rows; begin += sums.rows) {
    const std::int64_t count = std::min(sums.rows, y.rows - begin);
    linear(x.row_range(begin, count), weights, sums.row_range(0, count));
    copy_tensor(sums.row_range(0, count), y.row_range(begin, count));
  }
}

}  // namespace

void ExpertLinears::forward(const Context& context, const kernels::ExpertRuns& rows,
                            const Tensor& x, const Tensor& y) const {
  std::vector<Buffer> buffers;
  const bool rounds = y.dtype != wide_of(y.dtype);
  const Tensor sums = rounds ? take_scratch(context.arena, wide_of(y.dtype),
                                            std::min(kRoundedRows, y.rows), y.cols, buffers)
                             : Tensor();
  for (std::int64_t e = 0; e < rows.num_experts(); ++e) {
    const auto weights = of_expert(context.parameters, e);
    if (rows.of_expert(e) == 0) continue;
    if (rounds) {
      rounded_linear(rows.rows_of(x, e), weights, sums, rows.rows_of(y, e));
    } else {
      linear(rows.rows_of(x, e), weights, rows.rows_of(y, e));
    }
  }
}

void ExpertLinears::backward(const Context& context, const kernels::ExpertRuns& rows,
                             const Tensor& dy, const Tensor& dx) const {
  for (std::int64_t e = 0; e < rows.num_experts(); ++e)
    if (rows.of_expert(e) > 0)
      linear_input_gradient(rows.rows_of(dy, e), of_expert(context.parameters, e),
                            rows.rows_of(dx, e));
}

void ExpertLinears::queue(const kernels::ExpertRuns& rows, const Tensor& x, const Tensor& dy,
                          std::span<const GradientTarget> gradients,
                          std::vector<WeightProduct>& products) const {
  for (std::int64_t e = 0; e < rows.num_experts(); ++e) {
    if (rows.of_expert(e) == 0 && planted(Bug::kIdleExpertSkipped)) continue;
    queue_weight_gradient(rows.rows_of(x, e), rows.rows_of(dy, e), of_expert(gradients, e),
                          products);
  }
}

}  // namespace ptrain::layers
