#include "core/schedule/generators/dualpipe_rank.h"

namespace ptrain::schedule {
namespace {

// Writes a rank's list; counts micro-batches of each stage and kind, and holds back weight
// gradients in the order they came.
class Writer {
 public:
  explicit Writer(const DualPipeRank& rank) : rank_(rank) {}

  void forward(bool far) { cells_.push_back(next(Work::kForward, far)); }
  void backward(bool far) { cells_.push_back(next(Work::kBackward, far)); }
  void input(bool far) {
    Cell cell = next(Work::kBackward, far);
    cell.work = Work::kBackwardInput;
    cells_.push_back(cell);
    cell.work = Work::kBackwardWeight;
    weights_.push_back(cell);
  }
  void weight() { cells_.push_back(weights_[num_weights_++]); }
  void pair(bool far_forward) {
    forward(far_forward);
    backward(!far_forward);
    cells_[cells_.size() - 2].pair = cells_.back().pair = num_pairs_++;
  }
  std::vector<Cell> take() { return std::move(cells_); }

 private:
  Cell next(Work work, bool far) {
    Cell cell = far ? rank_.far : rank_.near;
    cell.work = work;
    cell.micro_batch += counts_[work == Work::kForward ? 0 : 1][far ? 1 : 0]++;
    return cell;
  }

  const DualPipeRank& rank_;
  std::vector<Cell> cells_;
  std::vector<Cell> weights_;
  std::size_t num_weights_ = 0;
  int num_pairs_ = 0;
  std::array<std::array<int, 2>, 2> counts_{};
};

// Forwards of the near stage, then both in turn, then the first backwards of the far one.
void fill(const DualPipeRank& rank, Writer& writer) {
  const int inner = rank.num_positions - 1 - rank.position;
  for (int i = 0; i < 2 * inner; ++i) writer.forward(false);
  for (int i = 0; i <= rank.position; ++i) {
    writer.forward(false);
    writer.forward(true);
  }
  for (int i = 0; i < inner; ++i) {
    writer.input(true);
    writer.weight();
    writer.forward(true);
  }
}

void steady(const DualPipeRank& rank, Writer& writer) {
  const int rounds = rank.num_micro_batches - 2 * rank.num_positions + rank.position + 1;
  for (int i = 0; i < rounds; ++i) {
    // Where the stages are neighbours, the first backward needs the forward beside it.
    if (i == 0 && rank.position == rank.num_positions - 1) {
      writer.forward(false);
      writer.backward(true);
    } else {
      writer.pair(false);
    }
    writer.pair(true);
  }
}

// From the middle of the last backwards on, weight gradients wait for the end.
void drain(const DualPipeRank& rank, Writer& writer) {
  const int inner = rank.num_positions - 1 - rank.position;
  for (int i = 0; i < inner; ++i) {
    writer.backward(true);
    writer.pair(true);
  }
  for (int i = 0; i < 2 * (rank.position + 1); ++i) {
    const bool far = i % 2 == 0;
    if (i > rank.position)
      writer.input(far);
    else
      writer.backward(far);
  }
  for (int i = 0; i < inner; ++i) {
    writer.weight();
    writer.input(false);
  }
  for (int i = 0; i <= rank.position; ++i) writer.weight();
}

}  // namespace

std::vector<Cell> dualpipe_rank(const DualPipeRank& rank) {
  Writer writer(rank);
  fill(rank, writer);
  steady(rank, writer);
  drain(rank, writer);
  return writer.take();
}

}  // namespace ptrain::schedule
