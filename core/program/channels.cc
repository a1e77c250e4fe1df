#include "core/program/channels.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/schedule/positions.h"

namespace ptrain::program {
namespace {

using schedule::Cell;
using schedule::Work;

// Of one sender, receiver and direction.
using Channel = std::vector<Transfer>;

void post(Channel& channel) {
  int latest = channel.empty() ? 0 : channel.back().used;
  for (auto transfer = channel.rbegin(); transfer != channel.rend(); ++transfer) {
    latest = std::min(latest, std::max(transfer->used - 1, 0));
    transfer->posted = latest;
  }
}

}  // namespace

std::vector<Transfer> transfers_of(const Pipeline& pipeline, int rank) {
  const schedule::Positions positions(pipeline.schedule);
  std::map<std::tuple<int, int, bool>, Channel> channels;
  for (int sender = 0; sender < pipeline.schedule.num_ranks(); ++sender) {
    int step = -1;
    for (const Cell& cell : pipeline.schedule.ranks[static_cast<std::size_t>(sender)]) {
      ++step;
      if (cell.work == Work::kBackwardWeight || cell.work == Work::kShared) continue;
      const bool forward = cell.work == Work::kForward;
      Cell next = cell;
      next.stage += forward ? 1 : -1;
      const int receiver = pipeline.rank_of(next.stage);
      if (receiver < 0 || receiver == sender || (sender != rank && receiver != rank)) continue;
      channels[{sender, receiver, forward}].push_back({.forward = forward,
                                                       .sender = sender,
                                                       .receiver = receiver,
                                                       .micro_batch = cell.micro_batch,
                                                       .from_stage = cell.stage,
                                                       .to_stage = next.stage,
                                                       .made = step,
                                                       .used = positions.of(next).step});
    }
  }
  std::vector<Transfer> all;
  for (auto& [ends, channel] : channels) {
    post(channel);
    all.insert(all.end(), channel.begin(), channel.end());
  }
  return all;
}

}  // namespace ptrain::program
