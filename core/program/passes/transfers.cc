#include "core/program/channels.h"
#include "core/program/knowledge.h"
#include "core/program/passes/passes.h"

namespace ptrain::program {
namespace {

using schedule::Cell;
using schedule::Work;

// The only actions of a stage that another rank holds are those of S.
bool belongs(const Action& action, const Cell& cell) {
  if (action.stage != cell.stage || action.micro_batch != cell.micro_batch) return false;
  if (cell.work == Work::kShared) return true;
  switch (action.kind) {
    case Kind::kForward:
      return cell.work == Work::kForward;
    case Kind::kBackward:
      return cell.work == Work::kBackward;
    case Kind::kBackwardInput:
      return cell.work == Work::kBackwardInput;
    case Kind::kBackwardWeight:
      return cell.work == Work::kBackwardWeight;
    case Kind::kRecompute:
      return cell.work == Work::kBackward || cell.work == Work::kBackwardInput;
    default:
      return false;
  }
}

// The names are those of torch.distributed.pipelining: a SEND names the stage that made what it
// sends, a RECV the stage that needs it.
Action transfer_action(const Transfer& transfer, bool sends) {
  Action action;
  action.lane = Lane::kTransfer;
  if (sends)
    action.kind = transfer.forward ? Kind::kSendForward : Kind::kSendBackward;
  else
    action.kind = transfer.forward ? Kind::kReceiveForward : Kind::kReceiveBackward;
  action.stage = sends ? transfer.from_stage : transfer.to_stage;
  action.micro_batch = transfer.micro_batch;
  action.attributes.emplace_back(sends ? "to" : "from",
                                 std::to_string(sends ? transfer.receiver : transfer.sender));
  return action;
}

class Transferring {
 public:
  Transferring(Draft draft, const Pipeline& pipeline, int rank)
      : draft_(std::move(draft)),
        out_(draft_.successor()),
        first_layer_(pipeline.layers_of(0).begin),
        cells_(pipeline.schedule.ranks[static_cast<std::size_t>(rank)]),
        steps_(cells_.size()),
        cell_of_(draft_.actions().size(), -1),
        transfers_(transfers_of(pipeline, rank)),
        ids_(transfers_.size(), -1) {
    find_cells();
    plan(pipeline.schedule, rank);
  }

  Draft run() {
    int entered = 0;  // cells before it
    for (std::size_t i = 0; i < draft_.actions().size(); ++i) {
      Action& action = draft_.actions()[i];
      const int cell = cell_of_[i];
      while (cell >= entered) enter(entered++, action);
      if (cell >= 0) use(cell, action);
      out_.keep(std::move(action));
      if (cell >= 0 && steps_[static_cast<std::size_t>(cell)].last == i) send(cell);
    }
    return std::move(out_);
  }

 private:
  // What happens at one cell; transfers by their number.
  struct Step {
    std::size_t last = 0;    // position of the cell's last action in the draft
    std::vector<int> posts;  // to receive from here on
    std::vector<int> ends;   // sends that are over for sure
    int used = -1;
    int sent = -1;
  };

  Step& step(int index) { return steps_[static_cast<std::size_t>(index)]; }
  int& id(int transfer) { return ids_[static_cast<std::size_t>(transfer)]; }
  const Transfer& transfer(int index) const { return transfers_[static_cast<std::size_t>(index)]; }

  // A cell of weight gradients may have no action.
  void find_cells() {
    int cell = 0;
    for (std::size_t i = 0; i < draft_.actions().size(); ++i) {
      const Action& action = draft_.actions()[i];
      if (layer_of(action) < first_layer_) continue;
      while (!belongs(action, cells_[static_cast<std::size_t>(cell)])) ++cell;
      cell_of_[i] = cell;
      step(cell).last = i;
    }
  }

  void plan(const schedule::Schedule& schedule, int rank) {
    const Knowledge knowledge(schedule);
    for (int t = 0; t < static_cast<int>(transfers_.size()); ++t) {
      const Transfer& one = transfer(t);
      if (one.receiver == rank) {
        step(one.posted).posts.push_back(t);
        step(one.used).used = t;
        continue;
      }
      step(one.made).sent = t;
      // The first cell that shows that the receiver stands ready; none: the step's end. The one
      // right behind it runs beside it.
      int shows = one.made + 2;
      const int num_steps = static_cast<int>(steps_.size());
      while (shows < num_steps && knowledge.num_ended(rank, shows, one.receiver) < one.posted)
        ++shows;
      if (shows < num_steps) step(shows).ends.push_back(t);
    }
  }

  void enter(int index, Action& first) {
    for (const int t : step(index).posts) id(t) = out_.add(transfer_action(transfer(t), false));
    for (const int t : step(index).ends) first.after.push_back(id(t));
  }

  // Recomputation does not need what is received.
  void use(int index, Action& action) {
    int& used = step(index).used;
    if (used < 0 || action.kind == Kind::kRecompute) return;
    action.after.push_back(id(used));
    used = -1;
  }

  void send(int index) {
    const int t = step(index).sent;
    if (t < 0) return;
    Action action = transfer_action(transfer(t), true);
    action.after.push_back(out_.actions().back().id);
    id(t) = out_.add(std::move(action));
  }

  Draft draft_;
  Draft out_;
  int first_layer_;                 // of all cells: 1 where the embedding is spread
  const std::vector<Cell>& cells_;  // of this rank
  std::vector<Step> steps_;         // by cell
  std::vector<int> cell_of_;        // by position in the draft; -1: of no cell
  std::vector<Transfer> transfers_;
  std::vector<int> ids_;  // by transfer: of its SEND or RECV
};

}  // namespace

Draft add_transfers(Draft draft, const Pipeline& pipeline, int rank) {
  if (pipeline.schedule.num_ranks() == 1) return draft;
  return Transferring(std::move(draft), pipeline, rank).run();
}

}  // namespace ptrain::program
