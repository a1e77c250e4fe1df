#include "launcher/plan/enumerate.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace ptrain::plan {

namespace {

using mesh::Layout;
using recipe::Recompute;

// Calls visit(layout) for every way to write num_ranks as dp x shard x cp x tp x pp.
template <class Visit>
void for_each_mix(int num_ranks, Visit visit) {
  for (const auto pp : divisors(num_ranks))
    for (const auto tp : divisors(num_ranks / pp))
      for (const auto cp : divisors(num_ranks / pp / tp))
        for (const auto shard : divisors(num_ranks / pp / tp / cp)) {
          Layout layout;
          layout.pp = static_cast<int>(pp);
          layout.tp = static_cast<int>(tp);
          layout.cp = static_cast<int>(cp);
          layout.shard = static_cast<int>(shard);
          layout.dp = static_cast<int>(num_ranks / pp / tp / cp / shard);
          visit(layout);
        }
}

class Enumerator {
 public:
  explicit Enumerator(const Space& space) : space_(space) {}

  Enumeration run() && {
    for_each_mix(space_.num_ranks, [this](const Layout& layout) { mix(layout); });
    return std::move(out_);
  }

 private:
  void reject(const Layout& layout, std::string reason, std::string detail, double excess) {
    out_.rejected.push_back({layout, std::move(reason), std::move(detail), excess});
  }

  void mix(const Layout& layout) {
    const int unavailable = layout.cp * layout.tp * layout.pp;
    if (unavailable > 1)
      return reject(layout, "cp, tp and pp above 1 are not available in this version",
                    fmt::format("cp {} tp {} pp {}", layout.cp, layout.tp, layout.pp), unavailable);
    const int ranks = layout.num_data_ranks();
    const auto detail = fmt::format("{} rows over {} ranks", space_.rows, ranks);
    if (space_.rows < ranks)
      return reject(layout, "more ranks than rows", detail,
                    static_cast<double>(ranks - space_.rows));
    if (space_.rows % ranks != 0)
      return reject(layout, "the rows of a step do not divide over the ranks", detail,
                    static_cast<double>(space_.rows % ranks));
    for (int zero = 1; zero <= (layout.shard > 1 ? 3 : 1); ++zero) {
      Layout next = layout;
      next.zero = zero;
      micro_batches(next);
    }
  }

  void micro_batches(Layout layout) {
    const std::int64_t rows = space_.rows / layout.num_data_ranks();
    for (const auto micro_batch : divisors(rows)) {
      layout.micro_batch = micro_batch;
      layout.num_micro_batches = rows / micro_batch;
      for (const auto recompute : {Recompute::kNone, Recompute::kFull}) {
        layout.recompute = recompute;
        prefetches(layout);
      }
    }
  }

  // Only where parameters are gathered again and again is there anything to gather ahead.
  void prefetches(Layout layout) {
    const bool gathers = layout.shard > 1 && layout.zero == 3;
    for (int prefetch = gathers ? 0 : 1; prefetch <= (gathers ? 2 : 1); ++prefetch) {
      layout.prefetch = prefetch;
      decide(layout);
    }
  }

  void decide(const Layout& layout) {
    const auto [excess, detail] = distance_from_fixed(layout);
    if (detail.empty()) return out_.legal.push_back(layout);
    reject(layout, "the recipe fixes another choice", detail, excess);
  }

  // How far the layout is from what the recipe fixes: the number of fields that differ, and the
  // first of them.
  std::pair<double, std::string> distance_from_fixed(const Layout& layout) const {
    const auto& fixed = space_.fixed;
    double differing = 0;
    std::string first;
    const auto check = [&](const char* name, std::int64_t wanted, std::int64_t got) {
      if (wanted == 0 || wanted == got) return;
      differing += 1;
      if (first.empty()) first = fmt::format("{} is fixed at {}", name, wanted);
    };
    check("dp", fixed.dp, layout.dp);
    check("shard", fixed.shard, layout.shard);
    // Without a shard axis zero has no meaning; it is then only an offence where sharding was
    // possible.
    const bool zero_matters = layout.shard > 1 || (fixed.shard == 0 && space_.num_ranks > 1);
    if (zero_matters) check("zero", fixed.zero, layout.shard > 1 ? layout.zero : -1);
    check("micro_batch", fixed.micro_batch, layout.micro_batch);
    if (fixed.recompute && *fixed.recompute != layout.recompute) {
      differing += 1;
      if (first.empty())
        first = fmt::format("recompute is fixed at {}",
                            *fixed.recompute == Recompute::kFull ? "full" : "none");
    }
    return {differing, first};
  }

  const Space& space_;
  Enumeration out_;
};

}  // namespace

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> low;
  std::vector<std::int64_t> high;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    low.push_back(d);
    if (d != number / d) high.push_back(number / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

Enumeration enumerate(const Space& space) { return Enumerator(space).run(); }

}  // namespace ptrain::plan
