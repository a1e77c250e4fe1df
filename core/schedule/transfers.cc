#include "core/schedule/transfers.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/schedule/positions.h"

namespace ptrain::schedule {
namespace {

// What a step does: word, work (I stands for B too), stage, micro-batch, slice.
using Key = std::tuple<Word, Work, int, int, int>;

bool is_send(Word word) { return word == Word::kSendForward || word == Word::kSendBackward; }

bool is_receive(Word word) {
  return word == Word::kReceiveForward || word == Word::kReceiveBackward;
}

Key key_of(const Step& step) {
  const Cell& cell = step.cell;
  const Work work = cell.work == Work::kBackward ? Work::kBackwardInput : cell.work;
  return {step.word, step.word == Word::kWork ? work : Work::kForward, cell.stage, cell.micro_batch,
          cell.slice};
}

Step moved(Word word, Cell cell, int stages) {
  cell.stage += stages;
  return {word, cell};
}

// The RECV of a SEND, and the SEND of a RECV.
Step partner_of(const Step& step) {
  switch (step.word) {
    case Word::kSendForward:
      return moved(Word::kReceiveForward, step.cell, 1);
    case Word::kReceiveForward:
      return moved(Word::kSendForward, step.cell, -1);
    case Word::kSendBackward:
      return moved(Word::kReceiveBackward, step.cell, -1);
    default:
      return moved(Word::kSendBackward, step.cell, 1);
  }
}

Step receive_of(const Cell& cell) {
  const bool forward = cell.work == Work::kForward;
  return {forward ? Word::kReceiveForward : Word::kReceiveBackward, cell};
}

Step send_of(const Cell& cell) {
  return {cell.work == Work::kForward ? Word::kSendForward : Word::kSendBackward, cell};
}

tl::unexpected<Error> bad(const Position& at, const Step& step, std::string_view reason) {
  return fail(ExitCode::kUsage,
              fmt::format("rank {}, cell {} ({}): {}", at.rank, at.step + 1, to_text(step), reason),
              "a file of work alone leaves transfers and gathers to ptrain");
}

class Transfers {
 public:
  Transfers(const Steps& steps, Sends sends) : steps_(steps), sends_(sends), next_(steps.size()) {
    for (std::size_t rank = 0; rank < steps.size(); ++rank)
      for (std::size_t i = 0; i < steps[rank].size(); ++i) {
        const Step& step = steps[rank][i];
        gathers_ = gathers_ || step.word == Word::kUnshard;
        transfers_ = transfers_ || is_receive(step.word);
        const Position here{static_cast<int>(rank), static_cast<int>(i)};
        places_.emplace(key_of(step), here);
        rank_of_stage_.emplace(step.cell.stage, here.rank);
      }
  }

  Status check_progress() {
    for (bool any = true; any;) {
      any = false;
      for (int rank = 0; rank < num_ranks(); ++rank)
        while (advance(rank)) any = true;
    }
    for (int rank = 0; rank < num_ranks(); ++rank)
      if (here(rank)) return stuck(rank);
    return {};
  }

  Status check_rank(int rank) const {
    std::set<Key> seen;
    std::set<int> gathered;
    Position at{rank, 0};
    for (const Step& step : steps_[static_cast<std::size_t>(rank)]) {
      PTRAIN_CHECK(check_step(at, step, seen));
      if (step.word == Word::kUnshard) gathered.insert(step.cell.stage);
      if (step.word == Word::kReshard) gathered.erase(step.cell.stage);
      if (gathers_ && step.word == Word::kWork && !gathered.contains(step.cell.stage))
        return bad(at, step, fmt::format("there is no {}UNSHARD before it", step.cell.stage));
      seen.insert(key_of(step));
      ++at.step;
    }
    return {};
  }

  int num_ranks() const { return static_cast<int>(steps_.size()); }

 private:
  const Step* here(int rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return next_[at] < steps_[at].size() ? &steps_[at][next_[at]] : nullptr;
  }

  std::optional<Position> place_of(const Step& step) const {
    const auto found = places_.find(key_of(step));
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }

  bool has_run(const Position& position) const {
    return static_cast<std::size_t>(position.step) < next_[static_cast<std::size_t>(position.rank)];
  }

  bool stands_at(const Position& position) const {
    return static_cast<std::size_t>(position.step) ==
           next_[static_cast<std::size_t>(position.rank)];
  }

  bool advance(int rank) {
    const Step* step = here(rank);
    if (step == nullptr) return false;
    const bool waits =
        is_receive(step->word) || (is_send(step->word) && sends_ == Sends::kRendezvous);
    if (waits) {
      const auto partner = place_of(partner_of(*step));
      if (!partner || partner->rank == rank) return false;
      if (sends_ == Sends::kAsynchronous && !has_run(*partner)) return false;
      if (sends_ == Sends::kRendezvous && !stands_at(*partner)) return false;
      if (sends_ == Sends::kRendezvous) ++next_[static_cast<std::size_t>(partner->rank)];
    }
    ++next_[static_cast<std::size_t>(rank)];
    return true;
  }

  // From a rank that waits to the one it waits for, until one comes again or there is none.
  tl::unexpected<Error> stuck(int rank) const {
    std::string text = "the transfers hang: ";
    std::set<int> named;
    while (named.insert(rank).second) {
      const Step* step = here(rank);
      const Step partner = partner_of(*step);
      const auto place = place_of(partner);
      text +=
          fmt::format("{}rank {} at {} (cell {}) waits for {}", named.size() > 1 ? ", " : "", rank,
                      to_text(*step), next_[static_cast<std::size_t>(rank)] + 1, to_text(partner));
      if (!place || here(place->rank) == nullptr || has_run(*place)) {
        text += ", which does not come";
        break;
      }
      text += fmt::format(" of rank {}", place->rank);
      rank = place->rank;
    }
    return fail(ExitCode::kUsage, text, "move a SEND before the RECV that its rank waits at");
  }

  // `seen`: what the rank has done before.
  Status check_step(const Position& at, const Step& step, const std::set<Key>& seen) const {
    if (step.word == Word::kWork) return check_input(at, step.cell, seen);
    if (!is_send(step.word) && !is_receive(step.word)) return {};
    if (seen.contains(key_of(step))) return bad(at, step, "comes twice");
    const Step partner = partner_of(step);
    const auto place = place_of(partner);
    if (!place || place->rank == at.rank)
      return bad(at, step, fmt::format("no other rank has {}", to_text(partner)));
    if (!is_send(step.word)) return {};
    Step work{Word::kWork, step.cell};
    work.cell.work = step.word == Word::kSendForward ? Work::kForward : Work::kBackwardInput;
    if (seen.contains(key_of(work))) return {};
    return bad(at, step, fmt::format("there is no {} before it", to_text(work)));
  }

  // A file of work and gathers alone leaves transfers to its reader.
  Status check_input(const Position& at, const Cell& cell, const std::set<Key>& seen) const {
    if (!transfers_ || cell.work == Work::kBackwardWeight) return {};
    const auto from = rank_of_stage_.find(cell.stage + (cell.work == Work::kForward ? -1 : 1));
    const bool remote = from != rank_of_stage_.end() && from->second != at.rank;
    const Step receive = receive_of(cell);
    if (!remote || seen.contains(key_of(receive))) return {};
    return bad(at, {Word::kWork, cell}, fmt::format("there is no {} before it", to_text(receive)));
  }

  const Steps& steps_;
  Sends sends_;
  bool gathers_ = false;
  bool transfers_ = false;
  std::map<Key, Position> places_;  // the first of each
  std::map<int, int> rank_of_stage_;
  std::vector<std::size_t> next_;
};

}  // namespace

Status check_transfers(const Steps& steps, Sends sends) {
  Transfers transfers(steps, sends);
  PTRAIN_CHECK(transfers.check_progress());
  for (int rank = 0; rank < transfers.num_ranks(); ++rank) PTRAIN_CHECK(transfers.check_rank(rank));
  return {};
}

Steps with_transfers(const Schedule& schedule) {
  const Positions positions(schedule);
  // Whether the result of `cell`, or what it needs, is on the rank of another stage.
  const auto remote = [&](const Cell& cell, int stages, int rank) {
    const Position other = positions.of(moved(Word::kWork, cell, stages).cell);
    return cell.work != Work::kBackwardWeight && other.exists() && other.rank != rank;
  };
  Steps steps;
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    auto& list = steps.emplace_back();
    const auto& cells = schedule.ranks[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < cells.size(); i += together(cells, i).size()) {
      const auto now = together(cells, i);
      for (const Cell& cell : now)
        if (remote(cell, cell.work == Work::kForward ? -1 : 1, rank))
          list.push_back(receive_of(cell));
      for (const Cell& cell : now) list.push_back({Word::kWork, cell});
      for (const Cell& cell : now)
        if (remote(cell, cell.work == Work::kForward ? 1 : -1, rank)) list.push_back(send_of(cell));
    }
  }
  return steps;
}

}  // namespace ptrain::schedule
