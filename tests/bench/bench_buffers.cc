// Milliseconds to place the parameters of one block of published models in buffers without split
// rows, and the padding: median of five.

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "core/mesh/buffer_plan.h"
#include "tests/support/published_layers.h"

int main() {
  using namespace ptrain;
  using Clock = std::chrono::steady_clock;
  std::printf("%-14s %6s %10s %10s\n", "rows kept", "ranks", "padding %", "ms");
  for (const auto& layer : support::published_layers()) {
    std::vector<model::ParameterSpec> parameters(layer.shapes.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].shape = layer.shapes[i];
      parameters[i].block = model::BlockKind::kRow;
    }
    for (const int ranks : {5, 7, 8, 64, 1000}) {
      mesh::BufferPlan plan;
      std::vector<double> times;
      for (int i = 0; i < 5; ++i) {
        const auto begin = Clock::now();
        plan = mesh::plan_buffer(parameters, 0, ranks);
        times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
      }
      std::ranges::sort(times);
      const auto total = static_cast<double>(plan.total());
      const auto padding = static_cast<double>(plan.padding());
      std::printf("%-14s %6d %10.4f %10.3f\n", layer.name.c_str(), ranks,
                  100 * padding / (total - padding), times[2]);
    }
  }
}
