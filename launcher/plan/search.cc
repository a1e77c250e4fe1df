#include "launcher/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "core/program/offload_plan.h"
#include "launcher/plan/axes.h"
#include "launcher/plan/evaluate.h"
#include "launcher/plan/least_bytes.h"
#include "launcher/plan/least_time.h"
#include "launcher/plan/memory.h"
#include "launcher/plan/order.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;
using recipe::Offload;
using recipe::Recompute;

// Times as many actions are simulated where nothing that fits has been found.
constexpr std::int64_t kPatience = 4;
constexpr std::size_t kKeptParts = 8;
constexpr std::size_t kMostListed = 10'000;  // rejected layouts that are listed one by one

Rejected too_large(const Layout& layout, std::int64_t bytes, std::int64_t memory) {
  constexpr double kMib = 1024.0 * 1024.0;
  return {layout, "more memory than a rank may have",
          fmt::format("needs at least {:.0f} MiB a rank of {:.0f}",
                      static_cast<double>(bytes) / kMib, static_cast<double>(memory) / kMib),
          static_cast<double>(bytes - memory), Shortage::kRankMemory};
}

// What the ranks of a full node keep waiting in the host's memory: beside GPUs, offloaded state.
std::int64_t waiting_bytes(const SearchInput& input, const Layout& layout,
                           std::span<const Part> parts) {
  if (!input.placement.on_gpus || layout.offload == Offload::kNone) return 0;
  std::int64_t most = 0;
  for (const Part& part : parts) {
    const auto fullest = mesh::fullest_ranks(part.architecture, part.buffers);
    most =
        std::max(most, program::plan_offload(part.architecture, part.buffers, fullest).store_bytes);
  }
  return most * input.placement.ranks_per_node;
}

std::int64_t host_memory(const SearchInput& input) {
  return std::ranges::min(input.cluster.nodes, {}, &cluster::Node::memory_bytes).memory_bytes;
}

Rejected too_much_waits(const Layout& layout, std::int64_t bytes, std::int64_t memory) {
  constexpr double kGib = 1 << 30;
  return {layout, "more offloaded state than a node has memory for",
          fmt::format("{:.0f} GiB wait in a node's {:.0f} GiB", static_cast<double>(bytes) / kGib,
                      static_cast<double>(memory) / kGib),
          static_cast<double>(bytes - memory), Shortage::kNodeMemory};
}

// A layout, or a mix of degrees whose options are not looked into yet.
struct Open {
  double least_s = 0;  // weighed
  bool is_mix = false;
  Layout layout;
  bool operator<(const Open& other) const {  // the last is taken first
    if (least_s != other.least_s) return least_s > other.least_s;
    if (is_mix != other.is_mix) return other.is_mix;
    return is_plainer(other.layout, layout);
  }
};

// What the parts of the model follow from.
std::string cut_of(const Layout& layout) {
  Layout cut = layout;
  cut.zero = 1;
  cut.micro_batch = cut.num_micro_batches = 1;
  cut.recompute = Recompute::kNone;
  cut.stage_recompute.clear();
  return mesh::to_string(cut);
}

// Best first: of all mixes and layouts it knows, it looks next into the one that may be fastest, by
// what it takes at least, and ends when that is slower than what it has simulated. So what is left
// out is slower for certain, unless it ends before for want of time.
class Search {
 public:
  Search(const SearchInput& input, Offload offload, Ranking& ranking)
      : input_(input),
        memory_(rank_memory(input)),
        sample_(sample_of(input.architecture)),
        ranking_(ranking) {
    space_.num_ranks = input.placement.num_ranks;
    space_.rows = input.shape.global_batch_tokens / input.shape.sequence;
    space_.fixed = input.fixed;
    space_.shared_window = input.placement.shares_memory();
    space_.offload = offload;
    space_.architecture = &input.architecture;
    space_.sequence = input.shape.sequence;
    space_.schedule_csv = input.schedule_csv;
    space_.on_gpus = input.placement.on_gpus;
    space_.sample = &sample_.architecture;
    space_.balanced = &balanced_;
    space_.schedules_later = true;
  }

  Status run() {
    Enumeration all = enumerate_degrees(space_);
    reject(std::move(all.rejected));
    ranking_.effort.degrees += std::ssize(all.legal);
    for (const Layout& degrees : all.legal) PTRAIN_CHECK(add_mix(degrees));
    while (!open_.empty() && open_.top().least_s <= limit_s_ && has_time()) {
      const Open next = open_.top();
      open_.pop();
      PTRAIN_CHECK(next.is_mix ? open_mix(next.layout) : look_into(next.layout));
    }
    for (; !open_.empty(); open_.pop()) leave_out(open_.top());
    return {};
  }

 private:
  bool has_time() const {
    const bool found = !ranking_.ranked.empty();
    return num_actions_ < input_.most_actions * (found ? 1 : kPatience);
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
  void reject(std::vector<Rejected> all) {
    for (Rejected& one : all) reject(std::move(one));
  }

  // With which all layouts of a mix take no less time, or no less memory.
  Layout fastest_options(Layout layout) const {
    const recipe::Parallel& fixed = input_.fixed;
    const std::int64_t rows = space_.rows / layout.num_data_ranks();
    layout.micro_batch = fixed.micro_batch > 0 ? fixed.micro_batch : rows;
    layout.num_micro_batches = std::max<std::int64_t>(1, rows / layout.micro_batch);
    layout.zero = fixed.zero > 0 ? fixed.zero : 1;
    layout.recompute = fixed.recompute.value_or(Recompute::kNone);
    layout.prefetch = fixed.prefetch.value_or(kMostPrefetch);
    return layout;
  }
  Layout smallest_options(Layout layout) const {
    const recipe::Parallel& fixed = input_.fixed;
    layout.micro_batch = std::max<std::int64_t>(1, fixed.micro_batch);
    layout.num_micro_batches =
        std::max<std::int64_t>(1, space_.rows / layout.num_data_ranks() / layout.micro_batch);
    layout.zero = fixed.zero > 0 ? fixed.zero : 3;
    if (layout.num_shards() == 1) layout.zero = 1;
    layout.recompute = fixed.recompute.value_or(Recompute::kFull);
    return layout;
  }

  Status add_mix(const Layout& degrees) {
    PTRAIN_TRY(const CutSample cut, cut_sample(sample_, degrees));
    LeastBytes bytes(input_, cut, counts_);
    LeastTime time(input_, cut);
    std::optional<Rejected> smallest;
    for (const Layout& layout : pipelines_of(smallest_options(degrees), space_)) {
      const std::int64_t least = bytes.of(layout);
      if (!smallest || static_cast<double>(least - memory_) < smallest->excess)
        smallest = too_large(layout, least, memory_);
    }
    if (smallest && smallest->excess > 0) {
      reject(std::move(*smallest));
      return {};
    }
    double least_s = std::numeric_limits<double>::infinity();
    for (const Layout& layout : pipelines_of(fastest_options(degrees), space_))
      least_s = std::min(
          least_s, time.of_all_from(layout, std::max<std::int64_t>(1, input_.fixed.micro_batch)));
    open_.push({weighed_seconds(degrees, least_s), true, degrees});
    return {};
  }

  Status open_mix(const Layout& degrees) {
    ranking_.effort.degrees_opened += 1;
    PTRAIN_TRY(const CutSample cut, cut_sample(sample_, degrees));
    LeastBytes bytes(input_, cut, counts_);
    LeastTime time(input_, cut);
    Enumeration all = enumerate_options(space_, degrees);
    reject(std::move(all.rejected));
    ranking_.effort.layouts += std::ssize(all.legal);
    for (Layout& layout : all.legal) {
      const std::int64_t least = bytes.of(layout);
      if (least > memory_) {
        reject(too_large(layout, least, memory_));
        continue;
      }
      Open one{weighed_seconds(layout, time.of(layout)), false, std::move(layout)};
      if (one.least_s > limit_s_)
        leave_out(one);
      else
        open_.push(std::move(one));
    }
    return {};
  }

  Result<const std::vector<Part>*> parts_for(const Layout& layout) {
    if (parts_.size() > kKeptParts) parts_.clear();
    std::vector<Part>& parts = parts_[cut_of(layout)];
    if (parts.empty()) {
      PTRAIN_TRY(parts, parts_of(input_.architecture, layout));
    }
    return &parts;
  }

  Status look_into(const Layout& layout) {
    Space asked = space_;
    asked.schedules_later = false;
    if (auto objection = schedule_fits(layout, asked)) {
      reject(rejected_for(layout, std::move(*objection)));
      return {};
    }
    PTRAIN_TRY(const std::vector<Part>* parts, parts_for(layout));
    Candidate candidate;
    candidate.layout = layout;
    PTRAIN_CHECK(simulate_candidate(input_, *parts, memory_, candidate));
    ranking_.effort.simulated += 1;
    num_actions_ += candidate.num_actions;
    const std::int64_t bytes = total_bytes(candidate.bytes);
    if (bytes > memory_) {
      reject(too_large(layout, bytes, memory_));
      return {};
    }
    if (const auto waiting = waiting_bytes(input_, layout, *parts); waiting > host_memory(input_)) {
      reject(too_much_waits(layout, waiting, host_memory(input_)));
      return {};
    }
    const double seconds = weighed_seconds(layout, candidate.predicted.step_s);
    limit_s_ = std::min(limit_s_, seconds * (1 + kTie));
    ranking_.ranked.push_back(std::move(candidate));
    return {};
  }

  void leave_out(const Open& one) {
    if (one.least_s <= limit_s_) ranking_.effort.left += 1;
    if (one.is_mix) return;
    const bool is_slower = one.least_s > limit_s_;
    reject({one.layout,
            is_slower ? "slower than the first for certain" : "not simulated for want of time",
            fmt::format("takes {:.4g} s or more", one.least_s / weighed_seconds(one.layout, 1)),
            one.least_s, is_slower ? Shortage::kNone : Shortage::kTime});
  }

  const SearchInput& input_;
  const std::int64_t memory_;
  const Sample sample_;
  Ranking& ranking_;
  Space space_;
  std::map<int, std::vector<int>> balanced_;
  StashCounts counts_;
  std::priority_queue<Open> open_;
  std::map<std::string, std::vector<Part>> parts_;
  std::map<std::string, std::size_t> last_of_reason_;         // among the rejected
  double limit_s_ = std::numeric_limits<double>::infinity();  // weighed
  std::int64_t num_actions_ = 0;
};

bool keeps_state(const model::Architecture& architecture) {
  return std::ranges::any_of(program::ring_buffers(architecture), [](int b) { return b >= 0; });
}

// Offloading gives layouts room, and mends nothing else.
bool lacks_memory(const Ranking& ranking) {
  return std::ranges::any_of(
      ranking.rejected, [](const Rejected& one) { return one.shortage == Shortage::kRankMemory; });
}

// Drops what a second search counts again: mixes of degrees, and what rules object to. Layouts of
// the first that do not fit or were left are layouts of their own.
void count_again(Ranking& ranking) {
  ranking.effort.degrees = ranking.effort.degrees_opened = 0;
  std::erase_if(ranking.rejected, [](const Rejected& one) {
    return one.shortage == Shortage::kNone || one.shortage == Shortage::kRows;
  });
}

}  // namespace

Result<Ranking> search(const SearchInput& input) {
  Ranking ranking{
      input.shape.name, {}, {}, {}, rank_memory(input), expert_load(input.architecture)};
  const auto fixed = input.fixed.offload;
  PTRAIN_CHECK(Search(input, fixed.value_or(Offload::kNone), ranking).run());
  const bool offloads = !fixed && keeps_state(input.architecture);
  if (ranking.ranked.empty() && offloads && lacks_memory(ranking)) {
    count_again(ranking);
    PTRAIN_CHECK(Search(input, Offload::kOptimizer, ranking).run());
  }
  rank_all(ranking.ranked, ranking.memory);
  return ranking;
}

}  // namespace ptrain::plan
