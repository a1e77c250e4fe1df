#include "core/schedule/generators/dispatch.h"

#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "core/schedule/generators/lists.h"

namespace ptrain::schedule {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::size_t at(int index) { return static_cast<std::size_t>(index); }

class Dispatcher {
 public:
  Dispatcher(const Problem& problem, const DispatchRules& rules)
      : problem_(problem),
        rules_(rules),
        schedule_(empty_schedule(problem)),
        stages_(at(schedule_.num_stages)),
        ranks_(at(problem.num_ranks)) {
    for (Stage& stage : stages_)
      stage.forward_at.assign(at(problem.num_micro_batches), kNever),
          stage.backward_at.assign(at(problem.num_micro_batches), kNever);
    stages_[0].forward_at.assign(at(problem.num_micro_batches), 0);
    for (int stage = 0; stage < schedule_.num_stages; ++stage)
      ranks_[at(rules.rank_of_stage[at(stage)])].stages.push_back(stage);
    for (int rank = 0; rank < problem.num_ranks; ++rank) wake_.push({0, rank});
  }

  Schedule run() {
    while (!wake_.empty()) {
      const auto [time, rank] = wake_.top();
      wake_.pop();
      if (ranks_[at(rank)].free_at <= time) choose(rank, time);
    }
    return std::move(schedule_);
  }

 private:
  struct Stage {
    std::vector<double> forward_at;  // when the input of a micro-batch is there
    std::vector<double> backward_at;
    int num_forwards = 0;  // done, in order
    int num_backwards = 0;
    int held = 0;
  };
  struct Rank {
    std::vector<int> stages;  // in model order
    std::queue<Cell> weights;
    double free_at = 0;
    int held = 0;
  };

  bool has_room(int rank, int stage) const {
    const Rank& on = ranks_[at(rank)];
    if (rules_.cap > 0 && on.held >= rules_.cap) return false;
    const bool first = stage == on.stages.front() && !rules_.first_stage_cap.empty();
    return !first || stages_[at(stage)].held < rules_.first_stage_cap[at(rank)];
  }
  bool can_forward(int rank, int stage, double time) const {
    const Stage& of = stages_[at(stage)];
    return of.num_forwards < problem_.num_micro_batches &&
           of.forward_at[at(of.num_forwards)] <= time && has_room(rank, stage);
  }
  bool can_backward(int stage, double time) const {
    const Stage& of = stages_[at(stage)];
    return of.num_backwards < of.num_forwards && of.backward_at[at(of.num_backwards)] <= time;
  }

  // What is preferred comes first.
  std::tuple<int, int, int> urgency(const Cell& cell) const {
    const int kind = cell.work == Work::kForward ? 1 : 0;
    switch (rules_.preference) {
      case Preference::kOldestBackward:
        return {kind, cell.micro_batch, 0};
      case Preference::kDeepestBackward:
        return {kind, -cell.stage, cell.micro_batch};
      case Preference::kDeepest:
        break;
    }
    return {-cell.stage, kind, cell.micro_batch};
  }

  void choose(int rank, double time) {
    std::optional<Cell> best;
    const auto offer = [&](const Cell& cell) {
      if (!best || urgency(cell) < urgency(*best)) best = cell;
    };
    for (const int stage : ranks_[at(rank)].stages) {
      const Stage& of = stages_[at(stage)];
      if (can_backward(stage, time))
        offer({.work = Work::kBackward, .stage = stage, .micro_batch = of.num_backwards});
      if (can_forward(rank, stage, time)) offer({.stage = stage, .micro_batch = of.num_forwards});
    }
    if (!best) return weight(rank, time);
    if (best->work == Work::kForward) return forward(rank, *best, time);
    return backward(rank, *best, time);
  }

  void forward(int rank, const Cell& cell, double time) {
    Stage& of = stages_[at(cell.stage)];
    ++of.num_forwards;
    ++of.held;
    ++ranks_[at(rank)].held;
    const double end = put(rank, cell, time, problem_.costs.forward);
    const int next = cell.stage + 1;
    if (next < schedule_.num_stages)
      arrive(rank, next, end, stages_[at(next)].forward_at[at(cell.micro_batch)]);
    else
      of.backward_at[at(cell.micro_batch)] = end;
  }

  void backward(int rank, Cell cell, double time) {
    double cost = problem_.costs.backward_input;
    if (rules_.split_backward) {
      cell.work = Work::kBackwardWeight;
      ranks_[at(rank)].weights.push(cell);
      cell.work = Work::kBackwardInput;
    } else {
      cost += problem_.costs.backward_weight;
      release(rank, cell.stage);
    }
    ++stages_[at(cell.stage)].num_backwards;
    const double end = put(rank, cell, time, cost);
    const int next = cell.stage - 1;
    if (next >= 0) arrive(rank, next, end, stages_[at(next)].backward_at[at(cell.micro_batch)]);
  }

  void weight(int rank, double time) {
    auto& weights = ranks_[at(rank)].weights;
    if (weights.empty()) return;
    release(rank, weights.front().stage);
    put(rank, weights.front(), time, problem_.costs.backward_weight);
    weights.pop();
  }

  void release(int rank, int stage) {
    --ranks_[at(rank)].held;
    --stages_[at(stage)].held;
  }

  double put(int rank, const Cell& cell, double start, double cost) {
    schedule_.ranks[at(rank)].push_back(cell);
    const double end = start + cost;
    ranks_[at(rank)].free_at = end;
    wake_.push({end, rank});
    return end;
  }

  void arrive(int from, int stage, double sent, double& arrival) {
    const int to = rules_.rank_of_stage[at(stage)];
    arrival = sent + (to == from ? 0 : problem_.costs.communication);
    wake_.push({arrival, to});
  }

  const Problem& problem_;
  const DispatchRules& rules_;
  Schedule schedule_;
  std::vector<Stage> stages_;
  std::vector<Rank> ranks_;
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>>
      wake_;  // when a rank may find something to do
};

}  // namespace

Schedule dispatch(const Problem& problem, const DispatchRules& rules) {
  return Dispatcher(problem, rules).run();
}

}  // namespace ptrain::schedule
