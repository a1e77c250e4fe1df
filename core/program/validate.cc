#include "core/program/validate.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "core/program/rank_check.h"

namespace ptrain::program {
namespace {

tl::unexpected<Error> broken(int rank, std::string_view where, std::string_view what) {
  return fail(ExitCode::kBug, fmt::format("rank {}, {}: {}", rank, where, what));
}

Status check_rank(const Program& program, const model::Architecture& architecture,
                  const mesh::Layout& layout) {
  RankCheck check(program, architecture, layout);
  for (const Action& action : program.actions) {
    if (const auto what = check.run(action)) return broken(program.rank, to_text(action), *what);
  }
  if (const auto what = check.end()) return broken(program.rank, "end", *what);
  return {};
}

// Ranks that meet in an action: all data ranks, or those of one replica for a gather or a reduction
// over the shard axis alone. Neighbours in rank order, from first to last.
struct Members {
  std::size_t first = 0;
  std::size_t last = 0;
};

bool is_collective(const Action& action, const mesh::Layout& layout) {
  return layout.num_ranks() > 1 &&
         (action.kind == Kind::kUnshard || action.kind == Kind::kReduceGrad ||
          action.kind == Kind::kGradNorm);
}

Members members_of(const Action& action, int rank, const mesh::Layout& layout) {
  const bool in_replica = action.kind == Kind::kUnshard || action.attribute("axis") == "shard";
  if (!in_replica) {
    return {0, static_cast<std::size_t>(layout.num_ranks()) - 1};
  }
  const auto first = static_cast<std::size_t>(rank - mesh::coordinates_of(layout, rank).shard);
  return {first, first + static_cast<std::size_t>(layout.shard) - 1};
}

bool same_collective(const Action& a, const Action& b) {
  return a.kind == b.kind && a.group == b.group && a.micro_batch == b.micro_batch &&
         a.attribute("axis") == b.attribute("axis");
}

// Runs all ranks side by side until nothing moves.
class World {
 public:
  World(std::span<const Program* const> programs, const mesh::Layout& layout, Queues queues)
      : programs_(programs), layout_(layout) {
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

  bool step(std::size_t rank, std::size_t queue) {
    const Action* action = ready(rank, queue);
    if (action == nullptr) return false;
    if (!is_collective(*action, layout_)) {
      complete(rank, queue, action->id);
      return true;
    }
    const Members members = members_of(*action, static_cast<int>(rank), layout_);
    // From the last, which arrives last: all but one of a collective's attempts end at the first
    // look.
    for (std::size_t other = members.last + 1; other-- > members.first;) {
      const Action* theirs = ready(other, queue);
      if (theirs == nullptr || !same_collective(*action, *theirs)) return false;
    }
    for (std::size_t other = members.first; other <= members.last; ++other) {
      complete(other, queue, ready(other, queue)->id);
    }
    return true;
  }

  // Where ids point backwards, a rank that is stuck is so in an action that is ready.
  Status finished() const {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t queue = 0; queue < ranks_[rank].queues.size(); ++queue) {
        if (const Action* action = ready(rank, queue)) {
          return broken(static_cast<int>(rank), to_text(*action),
                        "never runs: its group does not meet here");
        }
      }
    }
    return {};
  }

  std::span<const Program* const> programs_;
  const mesh::Layout& layout_;
  std::vector<Rank> ranks_;
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
  if (world.size() != static_cast<std::size_t>(layout.num_ranks())) {
    return fail(ExitCode::kBug,
                fmt::format("{} programs for {} ranks", world.size(), layout.num_ranks()));
  }
  std::set<const Program*> checked;
  for (const Program* program : world) {
    if (checked.insert(program).second) PTRAIN_CHECK(check_rank(*program, architecture, layout));
  }
  return World(world, layout, queues).run();
}

}  // namespace ptrain::program
