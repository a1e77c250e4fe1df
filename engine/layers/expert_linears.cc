#include "engine/layers/expert_linears.h"

#include <algorithm>

#include "engine/base/planted.h"
#include "engine/kernels/matmul.h"
#include "engine/layers/linear.h"

namespace ptrain::layers {

using kernels::ExpertRuns;
using kernels::Product;

// y: the rows of all experts from row `begin` on.
void ExpertLinears::multiply(const Context& context, const ExpertRuns& rows, std::int64_t begin,
                             const Tensor& x, const Tensor& y) const {
  std::vector<Product> products;
  for (std::int64_t e = 0; e < rows.num_experts(); ++e) {
    const std::int64_t first = std::max(rows.begin_of(e), begin);
    const std::int64_t count = std::min(rows.begin_of(e + 1), begin + y.rows) - first;
    if (count <= 0) continue;
    std::int64_t col = 0;
    for (const Tensor& weight : joined(of_expert(context.parameters, e))) {
      const Tensor results = y.row_range(first - begin, count).columns(col, weight.rows);
      products.push_back({x.row_range(first, count), weight, results});
      col += weight.rows;
    }
  }
  kernels::grouped_matmul(products, {.transpose_b = true});
}

void ExpertLinears::forward(const Context& context, const ExpertRuns& rows, const Tensor& x,
                            const Tensor& y) const {
  if (y.dtype == wide_of(y.dtype)) return multiply(context, rows, 0, x, y);
  multiply_in_blocks(context, y, [&](std::int64_t begin, const Tensor& block) {
    multiply(context, rows, begin, x, block);
  });
}

// Joined weights of one expert add up in the same rows of dx, so they take turns.
void ExpertLinears::backward(const Context& context, const ExpertRuns& rows, const Tensor& dy,
                             const Tensor& dx) const {
  std::vector<std::vector<Product>> turns;
  for (std::int64_t e = 0; e < rows.num_experts(); ++e) {
    if (rows.of_expert(e) == 0) continue;
    const Tensor gradients = rows.rows_of(dy, e);
    std::int64_t col = 0;
    std::size_t turn = 0;
    for (const Tensor& weight : joined(of_expert(context.parameters, e))) {
      if (turn == turns.size()) turns.emplace_back();
      turns[turn].push_back(
          {gradients.columns(col, weight.rows), weight, rows.rows_of(dx, e), turn > 0});
      col += weight.rows;
      ++turn;
    }
  }
  for (const std::vector<Product>& products : turns) kernels::grouped_matmul(products);
}

void ExpertLinears::queue(const ExpertRuns& rows, const Tensor& x, const Tensor& dy,
                          std::span<const GradientTarget> gradients,
                          std::vector<WeightProduct>& products) const {
  for (std::int64_t e = 0; e < rows.num_experts(); ++e) {
    if (rows.of_expert(e) == 0 && planted(Bug::kIdleExpertSkipped)) continue;
    queue_weight_gradient(rows.rows_of(x, e), rows.rows_of(dy, e), of_expert(gradients, e),
                          products);
  }
}

}  // namespace ptrain::layers
