#include "launcher/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <span>
#include <utility>

#include "core/program/offload_plan.h"
#include "launcher/plan/evaluate.h"
#include "launcher/plan/memory.h"
#include "launcher/plan/nearest.h"
#include "launcher/plan/order.h"
#include "launcher/plan/refusals.h"
#include "launcher/plan/search_space.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;
using recipe::Offload;

// Times as much work is done where nothing that fits has been found.
constexpr std::int64_t kPatience = 2;
constexpr std::int64_t kNearestShare = 3;  // a part of it, where none fits, to say which is nearest
constexpr std::int64_t kFewestTried = 4;   // ways down, before it gives up
constexpr std::int64_t kTriesAtLeast = 16;   // of them in all, where there are so many
constexpr std::size_t kMostListed = 10'000;  // rejected layouts that are listed one by one

// Best first: of all partial layouts it knows, it goes on with the one that may be fastest,
// by what its layouts take at least, and ends when that is slower than what it has simulated. So
// what is left out is slower for certain, unless it ends before for want of time.
class Search {
 public:
  Search(const SearchInput& input, Offload offload, Ranking& ranking)
      : input_(input), space_(input, offload), ranking_(ranking) {}

  Status run() {
    for (PartialLayout& one : expand(space_.start())) open_.push(std::move(one));
    while (!open_.empty() && open_.top().least <= limit_s_ && has_time_for(0)) {
      const PartialLayout next = open_.top();
      open_.pop();
      if (next.level == kLastLevel || is_due()) {
        PTRAIN_CHECK(go_down(next));
      } else {
        for (PartialLayout& one : expand(next)) open_.push(std::move(one));
      }
    }
    for (; !open_.empty(); open_.pop()) leave_out(open_.top());
    ranking_.effort.work += space_.work();
    return {};
  }

 private:
  // In the unit of kMostWork.
  std::int64_t work() const { return ranking_.effort.work + space_.work(); }

  bool has_time_for(std::int64_t more) const {
    if (!ranking_.ranked.empty()) return work() + more < input_.most_work;
    if (num_tried_ < kFewestTried && (num_tried_ == 0 || more < input_.most_work)) return true;
    return work() + more < input_.most_work * kPatience;
  }

  // Whether it is time for a whole layout: with each, fewer may still be the fastest.
  bool is_due() const { return work() - work_when_tried_ > input_.most_work / kTriesAtLeast; }

  // To a whole layout, by the fastest choice of each level; as long as none fits, by turns by that
  // which takes least memory. Or to where no choice is left.
  Status go_down(PartialLayout next) {
    const bool saves = ranking_.ranked.empty() && num_tried_ % 2 == 1;
    const auto is_worse = [saves](const PartialLayout& a, const PartialLayout& b) {
      return saves ? a.bytes > b.bytes : a < b;
    };
    while (next.level != kLastLevel) {
      std::vector<PartialLayout> all = expand(next);
      if (all.empty()) break;
      std::ranges::iter_swap(std::ranges::max_element(all, is_worse), all.end() - 1);
      next = std::move(all.back());
      all.pop_back();
      for (PartialLayout& one : all) open_.push(std::move(one));
    }
    if (next.level == kLastLevel) PTRAIN_CHECK(look_into(next));
    num_tried_ += 1;  // dead ends too, since there may be nothing else
    work_when_tried_ = work();
    return {};
  }

  void reject(Rejected one) {
    std::vector<Rejected>& all = ranking_.rejected;
    const auto [same, is_new] = last_of_reason_.try_emplace(one.reason, all.size());
    if (is_new || all.size() < kMostListed) {
      same->second = all.size();
      return all.push_back(std::move(one));
    }
    Rejected& listed = all[same->second];
    one.count += listed.count;
    if (one.excess < listed.excess)
      listed = std::move(one);
    else
      listed.count = one.count;
  }

  // What may be the fastest, of all choices of the next level.
  std::vector<PartialLayout> expand(const PartialLayout& partial) {
    const Level level = next_level(partial.level);
    Enumeration next = space_.next(partial);
    Effort& effort = ranking_.effort;
    if (level == Level::kDegrees) effort.num_degrees += std::ssize(next.legal);
    if (partial.level == Level::kDegrees) effort.num_degrees_opened += 1;
    if (level == kLastLevel) effort.num_layouts += std::ssize(next.legal);
    for (Rejected& one : next.rejected) reject(std::move(one));
    std::vector<PartialLayout> all;
    for (Layout& layout : next.legal)
      if (auto one = bounded(std::move(layout), level)) all.push_back(std::move(*one));
    return all;
  }

  // None: no layout that begins so fits, or is as fast as the first.
  std::optional<PartialLayout> bounded(Layout layout, Level level) {
    const std::int64_t memory = space_.memory();
    const Bound bound = space_.bounds().of(layout, level);
    if (bound.bytes > memory) {
      reject(too_large(bound.smallest, bound.bytes, memory, true));
      return std::nullopt;
    }
    const double least_s = weighed_seconds(layout, bound.seconds);
    PartialLayout one{least_s, level, std::move(layout), bound.bytes};
    if (one.least <= limit_s_) return one;
    leave_out(one);
    return std::nullopt;
  }

  // Why it is not simulated.
  std::optional<Rejected> refusal_of(const Layout& layout) {
    if (auto objection = space_.objection_to_schedule(layout))
      return rejected_for(layout, std::move(*objection));
    return too_long(layout, space_.bounds().work_to_compile(layout));
  }

  Status look_into(const PartialLayout& open) {
    const Layout& layout = open.layout;
    if (auto refused = refusal_of(layout)) {
      reject(std::move(*refused));
      return {};
    }
    if (!has_time_for(space_.bounds().work_to_simulate(layout))) {
      leave_out(open);
      return {};
    }
    PTRAIN_TRY(Candidate candidate, space_.simulate(layout, space_.memory()));
    ranking_.effort.num_simulated += 1;
    const std::int64_t bytes = program::total_bytes(candidate.bytes);
    if (bytes > space_.memory()) {
      reject(too_large(layout, bytes, space_.memory(), false));
      return {};
    }
    PTRAIN_TRY(const std::vector<Part>* parts, space_.parts_for(layout));
    if (auto refused = waits_too_much(input_, layout, *parts)) {
      reject(std::move(*refused));
      return {};
    }
    const double seconds = weighed_seconds(layout, candidate.predicted.step_s);
    limit_s_ = std::min(limit_s_, seconds * (1 + kTie));
    ranking_.ranked.push_back(std::move(candidate));
    return {};
  }

  void leave_out(const PartialLayout& one) {
    if (one.least <= limit_s_) ranking_.effort.num_left += 1;
    if (one.level != kLastLevel) return;
    const bool is_slower = one.least > limit_s_;
    reject({.layout = one.layout,
            .reason =
                is_slower ? "slower than the first for certain" : "not simulated for want of time",
            .detail =
                fmt::format("takes {:.4g} s or more", one.least / weighed_seconds(one.layout, 1)),
            .excess = one.least,
            .shortage = is_slower ? Shortage::kNone : Shortage::kTime});
  }

  const SearchInput& input_;
  SearchSpace space_;
  Ranking& ranking_;
  std::priority_queue<PartialLayout> open_;
  std::map<std::string, std::size_t> last_of_reason_;         // among the rejected
  double limit_s_ = std::numeric_limits<double>::infinity();  // weighed
  std::int64_t num_tried_ = 0, work_when_tried_ = 0;          // ways down
};

bool keeps_state(const model::Architecture& architecture) {
  return std::ranges::any_of(program::ring_buffers(architecture), [](int b) { return b >= 0; });
}

// Offloading gives layouts room, and mends nothing else.
bool lacks_memory(const Ranking& ranking) {
  return std::ranges::any_of(
      ranking.rejected, [](const Rejected& one) { return one.shortage == Shortage::kRankMemory; });
}

// Drops what a second search counts again: choices of degrees, and what rules object to. Layouts of
// the first that do not fit or were left are layouts of their own.
void count_again(Ranking& ranking) {
  ranking.effort.num_degrees = ranking.effort.num_degrees_opened = 0;
  std::erase_if(ranking.rejected, [](const Rejected& one) {
    return one.shortage == Shortage::kNone || one.shortage == Shortage::kRows;
  });
}

// Where nothing fits: the layout that comes closest, of both kinds.
Status add_nearest(const SearchInput& input, std::span<const Offload> kinds, Ranking& ranking) {
  std::optional<Rejected> nearest;
  for (const Offload kind : kinds) {
    const auto share = input.most_work / kNearestShare / std::ssize(kinds);
    PTRAIN_TRY(auto found, nearest_to_fit(input, kind, share));
    if (found && (!nearest || found->excess < nearest->excess)) nearest = std::move(found);
  }
  if (!nearest) return {};
  nearest->is_nearest = true;
  nearest->count = 0;  // it stands among the others
  ranking.rejected.push_back(std::move(*nearest));
  return {};
}

}  // namespace

Result<Ranking> search(const SearchInput& input) {
  Ranking ranking{
      input.shape.name, {}, {}, {}, rank_memory(input), expert_load(input.architecture)};
  const auto fixed = input.fixed.offload;
  std::vector<Offload> kinds = {fixed.value_or(Offload::kNone)};
  PTRAIN_CHECK(Search(input, kinds.front(), ranking).run());
  const bool offloads = !fixed && keeps_state(input.architecture);
  if (ranking.ranked.empty() && offloads && lacks_memory(ranking)) {
    kinds.push_back(Offload::kOptimizer);
    count_again(ranking);
    PTRAIN_CHECK(Search(input, kinds.back(), ranking).run());
  }
  if (ranking.ranked.empty() && lacks_memory(ranking))
    PTRAIN_CHECK(add_nearest(input, kinds, ranking));
  rank_all(ranking.ranked, ranking.memory);
  return ranking;
}

}  // namespace ptrain::plan
