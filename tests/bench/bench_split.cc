// What splitting backwards costs: CPU seconds of all BACKWARD_INPUT and BACKWARD_WEIGHT of a step
// beside all BACKWARD of the same step, interleaved, one rank of two stages, whose weights come one
// micro-batch after their inputs as in zb_h1. Run with OMP_NUM_THREADS=1. Arguments as of
// bench_step; `rows` are micro-batches.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/program/compile.h"
#include "engine/base/engine_error.h"
#include "engine/execute/executor.h"
#include "engine/execute/groups.h"
#include "engine/state/init.h"
#include "tests/bench/shape.h"

namespace ptrain {
namespace {

using program::Kind;

std::string order(std::int64_t micro_batches, bool splits) {
  std::string cells;
  for (std::int64_t m = 0; m < micro_batches; ++m) {
    cells += fmt::format("0F{0},1F{0},", m);
    if (!splits) cells += fmt::format("1B{0},0B{0},", m);
    if (splits) cells += fmt::format("1I{0},0I{0},", m);
    if (splits && m > 0) cells += fmt::format("1W{0},0W{0},", m - 1);
  }
  if (splits) cells += fmt::format("1W{0},0W{0},", micro_batches - 1);
  cells.back() = '\n';
  return cells;
}

mesh::Layout layout_of(const bench::Shape& shape, bool splits) {
  mesh::Layout layout;
  layout.num_virtual = 2;
  layout.num_micro_batches = shape.rows;
  layout.schedule_csv = order(shape.rows, splits);
  return layout;
}

// One rank with one of the two orders.
class Rank {
 public:
  Rank(const bench::Shape& shape, DType compute_dtype, bool splits)
      : layout_(layout_of(shape, splits)),
        architecture_(architecture_of(shape, compute_dtype)),
        program_(value_or_throw(program::compile({architecture_, layout_, "bench"}, 0))),
        groups_(*world_, layout_, architecture_),
        executor_(architecture_, layout_, groups_.communicators(), arena_) {
    for (auto& group : executor_.groups())
      for (const auto& run : group.runs())
        state::initial_values(architecture_.parameters[static_cast<std::size_t>(run.parameter)],
                              architecture_, 1, run.begin, run.end, group.master(run));
    state::publish_masters(executor_.groups());
    executor_.observe([this](const program::Action& action, bool begins) {
      const bool goes_back = action.kind == Kind::kBackward ||
                             action.kind == Kind::kBackwardInput ||
                             action.kind == Kind::kBackwardWeight;
      if (goes_back) backward_s_ += (begins ? -1 : 1) * bench::cpu_seconds();
    });
  }
  ~Rank() {
    executor_.close();
    groups_.close();
    world_->close();
  }

  // CPU seconds of a step's backwards.
  double step(std::span<const data::MicroBatch> batches) {
    backward_s_ = 0;
    settings_.learning_rate = 1e-4;
    settings_.step += 1;
    executor_.train(program_, batches, settings_);
    return backward_s_;
  }

 private:
  std::unique_ptr<comm::Communicator> world_ = comm::make_single();
  mesh::Layout layout_;
  model::Architecture architecture_;
  program::Program program_;
  Arena arena_;
  execute::Groups groups_;
  execute::Executor executor_;
  execute::StepSettings settings_;
  double backward_s_ = 0;
};

void run(const bench::Shape& shape, DType compute_dtype) {
  std::vector<data::MicroBatch> batches;
  for (std::int64_t m = 0; m < shape.rows; ++m)
    batches.push_back(random_batch(shape, 1, static_cast<unsigned>(m)));
  Rank whole(shape, compute_dtype, false), split(shape, compute_dtype, true);
  std::vector<double> ratios;
  double least_whole_s = 1e9, least_split_s = 1e9;
  for (std::int64_t step = 0; step < shape.steps + 2; ++step) {  // two to warm up
    const double whole_s = whole.step(batches), split_s = split.step(batches);
    if (step < 2) continue;
    ratios.push_back(split_s / whole_s);
    least_whole_s = std::min(least_whole_s, whole_s);
    least_split_s = std::min(least_split_s, split_s);
  }
  std::ranges::sort(ratios);
  fmt::print(R"({{"split_over_whole": {:.3f}, "of_the_quickest": {:.3f}, "least": {:.3f}, )"
             R"("most": {:.3f}}})"
             "\n",
             ratios[ratios.size() / 2], least_split_s / least_whole_s, ratios.front(),
             ratios.back());
}

}  // namespace
}  // namespace ptrain

int main(int argc, char** argv) { return ptrain::bench::run_on(argc, argv, ptrain::run); }
