#include "core/program/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "core/model/exchanges.h"
#include "core/program/rank_check.h"

namespace ptrain::program {
namespace {

tl::unexpected<Error> broken(int rank, std::string_view where, std::string_view what) {
  return fail(ExitCode::kBug, fmt::format("rank {}, {}: {}", rank, where, what));
}

Status check_rank(const Program& program, const model::Architecture& architecture,
                  const mesh::Layout& layout, const Pipeline& pipeline) {
  RankCheck check(program, architecture, layout, pipeline);
  for (const Action& action : program.actions) {
    if (const auto what = check.run(action)) return broken(program.rank, to_text(action), *what);
  }
  if (const auto what = check.end()) return broken(program.rank, "end", *what);
  return {};
}

// Ranks that meet in an action, by their numbers: blocks of neighbours.
struct Members {
  std::size_t first = 0;
  std::size_t count = 1;
  std::size_t stride = 1;  // from block to block
  std::size_t block = 1;
  std::size_t rank(std::size_t i) const { return first + i / block * stride + i % block; }
};

bool is_collective(const Action& action, const mesh::Layout& layout) {
  switch (action.kind) {
    case Kind::kUnshard:
    case Kind::kReduceGrad:
    case Kind::kGradNorm:
      return layout.num_ranks() > 1;
    case Kind::kExchange:
    case Kind::kSyncTied:
      return true;
    default:
      return false;
  }
}

bool is_send(const Action& action) {
  return action.kind == Kind::kSendForward || action.kind == Kind::kSendBackward;
}

// Ranks of an axis that lies within others, by the number of the first and the distance to the
// next.
Members along(const Action& exchange, mesh::Coordinates place, const mesh::Layout& layout) {
  const auto size = [](int value) { return static_cast<std::size_t>(value); };
  const auto from = [&] { return size(mesh::rank_of(layout, place)); };
  const auto axis = model::exchange_axis_named(exchange.attribute("axis"));
  if (axis == model::ExchangeAxis::kRing) {
    place.cp %= layout.ulysses;
    return {from(), size(layout.cp / layout.ulysses), size(layout.ulysses * layout.tp)};
  }
  if (axis == model::ExchangeAxis::kUlysses) {
    place.cp -= place.cp % layout.ulysses;
    return {from(), size(layout.ulysses), size(layout.tp)};
  }
  if (axis == model::ExchangeAxis::kExperts) {
    const int block = layout.ep * layout.etp;
    const int rank = mesh::rank_of(layout, place);
    return {size(rank - rank % block), size(block), 1};
  }
  place.tp = 0;
  if (axis == model::ExchangeAxis::kVocabulary) {
    place.pp = 0;
    return {from(), size(layout.pp * layout.tp), size(layout.num_ranks() / layout.pp),
            size(layout.tp)};
  }
  if (axis != model::ExchangeAxis::kRows) return {from(), size(layout.tp), 1};
  place.cp = 0;
  return {from(), size(layout.cp * layout.tp), 1};
}

// Of experts: those of one replica, or all that hold the same.
Members expert_holders(int rank, bool in_replica, const mesh::Layout& layout) {
  const mesh::ExpertCoordinates place = mesh::expert_coordinates_of(layout, rank);
  const int shards = mesh::num_expert_shards(layout), stride = layout.ep * layout.etp;
  const int before = place.eshard + (in_replica ? 0 : place.edp * shards);
  const auto size = [](int value) { return static_cast<std::size_t>(value); };
  return {size(rank - before * stride),
          size(shards * (in_replica ? 1 : mesh::num_expert_replicas(layout))), size(stride)};
}

// All ranks; those of its axis for an exchange; those of one replica for a gather or a reduction
// over the shard axis alone; the data ranks of a pipeline rank; the two ends of a pipeline.
Members members_of(const Action& action, int rank, const mesh::Layout& layout,
                   const Pipeline& pipeline, const model::Architecture& part) {
  const auto size = [](int value) { return static_cast<std::size_t>(value); };
  mesh::Coordinates place = mesh::coordinates_of(layout, rank);
  if (action.kind == Kind::kGradNorm) return {0, size(layout.num_ranks()), 1};
  if (action.kind == Kind::kSyncTied) {
    const auto [low, high] = std::minmax({pipeline.ranks.front(), pipeline.ranks.back()});
    place.pp = low;
    return {size(mesh::rank_of(layout, place)), 2,
            size((high - low) * (layout.num_ranks() / layout.pp))};
  }
  if (action.kind == Kind::kExchange) return along(action, place, layout);
  const bool in_replica = action.kind == Kind::kUnshard || action.attribute("axis") == "shard";
  if (part.groups[static_cast<std::size_t>(action.group)].experts)
    return expert_holders(rank, in_replica, layout);
  place.shard = place.cp = 0;
  if (!in_replica) place.dp = 0;
  return {size(mesh::rank_of(layout, place)),
          size(layout.num_shards() * (in_replica ? 1 : layout.dp)), size(layout.tp)};
}

bool same_collective(const Action& a, const Action& b) {
  return a.kind == b.kind && a.group == b.group && a.micro_batch == b.micro_batch &&
         a.layer_first == b.layer_first && a.segment == b.segment &&
         a.attribute("kind") == b.attribute("kind") && a.attribute("axis") == b.attribute("axis");
}

// Runs all ranks side by side until nothing moves. A SEND or RECV keeps nobody: its lane goes on at
// once, and it is done when its other half has begun as well.
class World {
 public:
  World(std::span<const Program* const> programs, std::span<const model::Architecture* const> parts,
        const mesh::Layout& layout, const Pipeline& pipeline, Queues queues)
      : programs_(programs), parts_(parts), layout_(layout), pipeline_(pipeline) {
    for (const Program* program : programs) {
      Rank& rank = ranks_.emplace_back();
      rank.done.resize(program->actions.size());
      rank.queues.resize(queues == Queues::kOne ? 1 : 6);
      for (const Action& action : program->actions) {
        const auto lane = static_cast<std::size_t>(action.lane);
        rank.queues[queues == Queues::kOne ? 0 : lane].ids.push_back(action.id);
      }
    }
  }

  Status run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        for (std::size_t queue = 0; queue < ranks_[rank].queues.size(); ++queue) {
          while (step(rank, queue)) moved = true;
        }
      }
      PTRAIN_CHECK(matched_);
    }
    return finished();
  }

 private:
  struct Queue {
    std::vector<int> ids;
    std::size_t next = 0;
  };
  struct Rank {
    std::vector<bool> done;
    std::vector<Queue> queues;
  };

  // What one rank sends another in one direction, in order; of both ends those that have begun.
  struct Channel {
    std::vector<const Action*> sends, receives;
    std::size_t num_matched = 0;
  };
  struct Ends {
    std::size_t sender, receiver;
    bool forward;
    auto operator<=>(const Ends&) const = default;
  };

  // The action at the head of a queue, if all it waits for is done.
  const Action* ready(std::size_t rank, std::size_t queue) const {
    const Queue& head = ranks_[rank].queues[queue];
    if (head.next == head.ids.size()) return nullptr;
    const Action& action = programs_[rank]->actions[static_cast<std::size_t>(head.ids[head.next])];
    for (int id : action.after) {
      if (!ranks_[rank].done[static_cast<std::size_t>(id)]) return nullptr;
    }
    return &action;
  }

  void complete(std::size_t rank, std::size_t queue, int id) {
    ranks_[rank].done[static_cast<std::size_t>(id)] = true;
    ranks_[rank].queues[queue].next += 1;
  }

  std::size_t peer_of(std::size_t rank, std::string_view stage_rank) const {
    mesh::Coordinates place = mesh::coordinates_of(layout_, static_cast<int>(rank));
    place.pp = std::stoi(std::string(stage_rank));  // RankCheck has seen it
    return static_cast<std::size_t>(mesh::rank_of(layout_, place));
  }

  void begin_transfer(std::size_t rank, std::size_t queue, const Action& action) {
    ranks_[rank].queues[queue].next += 1;
    const bool sends = is_send(action);
    const std::size_t peer = peer_of(rank, action.attribute(sends ? "to" : "from"));
    const bool forward = action.kind == Kind::kSendForward || action.kind == Kind::kReceiveForward;
    const Ends ends = sends ? Ends{rank, peer, forward} : Ends{peer, rank, forward};
    Channel& channel = channels_[ends];
    (sends ? channel.sends : channel.receives).push_back(&action);
    const std::size_t next = channel.num_matched;
    if (next == channel.sends.size() || next == channel.receives.size()) return;
    const Action &send = *channel.sends[next], &receive = *channel.receives[next];
    channel.num_matched += 1;
    ranks_[ends.sender].done[static_cast<std::size_t>(send.id)] = true;
    ranks_[ends.receiver].done[static_cast<std::size_t>(receive.id)] = true;
    const bool fits =
        send.micro_batch == receive.micro_batch && send.stage + (forward ? 1 : -1) == receive.stage;
    if (!fits && matched_)
      matched_ = broken(static_cast<int>(ends.receiver), to_text(receive),
                        fmt::format("rank {} sends {} first", ends.sender, to_text(send)));
  }

  bool step(std::size_t rank, std::size_t queue) {
    const Action* action = ready(rank, queue);
    if (action == nullptr) return false;
    if (action->lane == Lane::kTransfer) {
      begin_transfer(rank, queue, *action);
      return true;
    }
    if (!is_collective(*action, layout_)) {
      complete(rank, queue, action->id);
      return true;
    }
    const Members members =
        members_of(*action, static_cast<int>(rank), layout_, pipeline_, *parts_[rank]);
    // From the last, which arrives last: all but one of a collective's attempts end at the first
    // look.
    for (std::size_t i = members.count; i-- > 0;) {
      const Action* theirs = ready(members.rank(i), queue);
      if (theirs == nullptr || !same_collective(*action, *theirs)) return false;
    }
    for (std::size_t i = 0; i < members.count; ++i)
      complete(members.rank(i), queue, ready(members.rank(i), queue)->id);
    return true;
  }

  // Where ids point backwards, a rank that is stuck is so in an action that is ready, or waits for
  // one half of a transfer.
  Status finished() const {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t queue = 0; queue < ranks_[rank].queues.size(); ++queue) {
        if (const Action* action = ready(rank, queue)) {
          return broken(static_cast<int>(rank), to_text(*action),
                        "never runs: its group does not meet here");
        }
      }
    }
    for (const auto& [ends, channel] : channels_) {
      if (channel.num_matched < channel.receives.size())
        return broken(static_cast<int>(ends.receiver),
                      to_text(*channel.receives[channel.num_matched]),
                      fmt::format("waits for ever for rank {} to send it", ends.sender));
      if (channel.num_matched < channel.sends.size())
        return broken(static_cast<int>(ends.sender), to_text(*channel.sends[channel.num_matched]),
                      fmt::format("rank {} never receives it", ends.receiver));
    }
    return {};
  }

  std::span<const Program* const> programs_;
  std::span<const model::Architecture* const> parts_;
  const mesh::Layout& layout_;
  const Pipeline& pipeline_;
  std::vector<Rank> ranks_;
  std::map<Ends, Channel> channels_;
  Status matched_;
};

}  // namespace

Status validate(std::span<const Program> world, const model::Architecture& architecture,
                const mesh::Layout& layout, Queues queues) {
  std::vector<const Program*> programs;
  for (const Program& program : world) {
    const int rank = static_cast<int>(programs.size());
    if (program.rank != rank) return broken(rank, "header", "holds another rank's program");
    programs.push_back(&program);
  }
  return validate(programs, architecture, layout, queues);
}

Status validate(std::span<const Program* const> world, const model::Architecture& architecture,
                const mesh::Layout& layout, Queues queues) {
  const std::vector<const model::Architecture*> parts(world.size(), &architecture);
  return validate(world, parts, layout, queues);
}

Status validate(std::span<const Program* const> world,
                std::span<const model::Architecture* const> parts, const mesh::Layout& layout,
                Queues queues) {
  if (world.size() != static_cast<std::size_t>(layout.num_ranks())) {
    return fail(ExitCode::kBug,
                fmt::format("{} programs for {} ranks", world.size(), layout.num_ranks()));
  }
  const auto num_layers = static_cast<int>(parts.front()->layers.size());
  PTRAIN_TRY(const Pipeline pipeline, pipeline_of(layout, num_layers, true));
  std::set<const Program*> checked;
  for (std::size_t rank = 0; rank < world.size(); ++rank)
    if (checked.insert(world[rank]).second)
      PTRAIN_CHECK(check_rank(*world[rank], *parts[rank], layout, pipeline));
  return World(world, parts, layout, pipeline, queues).run();
}

Status validate_places(std::span<const Program* const> places,
                       std::span<const model::Architecture* const> parts,
                       const mesh::Layout& layout, Queues queues) {
  if (places.size() != static_cast<std::size_t>(layout.pp))
    return fail(ExitCode::kBug, fmt::format("{} programs for {} places", places.size(), layout.pp));
  const auto num_layers = static_cast<int>(parts.front()->layers.size());
  PTRAIN_TRY(const Pipeline pipeline, pipeline_of(layout, num_layers, true));
  for (std::size_t place = 0; place < places.size(); ++place)
    PTRAIN_CHECK(check_rank(*places[place], *parts[place], layout, pipeline));
  mesh::Layout alone;  // one rank a place
  alone.pp = layout.pp;
  return World(places, parts, alone, pipeline, queues).run();
}

}  // namespace ptrain::program
