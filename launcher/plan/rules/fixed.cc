#include <fmt/format.h>

#include "launcher/plan/rules/rules.h"

namespace ptrain::plan {

namespace {

// Counts the fields that differ from what the recipe fixes and names the first.
class Differences {
 public:
  void check(bool is_fixed, const char* name, std::int64_t wanted, std::int64_t got) {
    if (is_fixed && wanted != got) add(fmt::format("{} is fixed at {}", name, wanted));
  }
  void add(const std::string& difference) {
    if (count_ == 0) first_ = difference;
    count_ += 1;
  }
  std::optional<Objection> objection() const {
    if (count_ == 0) return std::nullopt;
    return Objection{"the recipe fixes another choice", first_, static_cast<double>(count_)};
  }

 private:
  int count_ = 0;
  std::string first_;
};

Differences differences_of_degrees(const mesh::Layout& layout, const recipe::Parallel& fixed) {
  Differences differences;
  differences.check(fixed.dp > 0, "dp", fixed.dp, layout.dp);
  differences.check(fixed.shard > 0, "shard", fixed.shard, layout.shard);
  differences.check(fixed.tp > 0, "tp", fixed.tp, layout.tp);
  differences.check(fixed.pp > 0, "pp", fixed.pp, layout.pp);
  differences.check(fixed.ring > 0, "cp.ring", fixed.ring, layout.cp / layout.ulysses);
  differences.check(fixed.ulysses > 0, "cp.ulysses", fixed.ulysses, layout.ulysses);
  differences.check(fixed.ep > 0, "ep", fixed.ep, layout.ep);
  differences.check(fixed.etp > 0, "etp", fixed.etp, layout.etp);
  return differences;
}

}  // namespace

std::optional<Objection> degrees_are_as_fixed(const mesh::Layout& layout, const Space& space) {
  return differences_of_degrees(layout, space.fixed).objection();
}

std::optional<Objection> is_as_fixed(const mesh::Layout& layout, const Space& space) {
  const auto& fixed = space.fixed;
  Differences differences = differences_of_degrees(layout, fixed);
  differences.check(fixed.num_virtual > 0, "virtual", fixed.num_virtual, layout.num_virtual);
  if (!fixed.schedule.empty() && layout.num_stages() == 1)
    differences.add(fmt::format("schedule is fixed at {}", fixed.schedule));
  if (!fixed.stages.empty() && layout.num_stages() == 1)
    differences.add(fmt::format("stages are fixed at {}", fixed.stages));
  // Without a shard axis zero has no meaning; it is then only an offence where sharding was
  // possible.
  const bool could_shard = space.num_ranks > layout.pp * layout.tp * layout.cp;
  const bool zero_matters = layout.num_shards() > 1 || (fixed.shard == 0 && could_shard);
  differences.check(fixed.zero > 0 && zero_matters, "zero", fixed.zero,
                    layout.num_shards() > 1 ? layout.zero : -1);
  differences.check(fixed.micro_batch > 0, "micro_batch", fixed.micro_batch, layout.micro_batch);
  if (fixed.recompute && *fixed.recompute != layout.recompute)
    differences.add(fmt::format("recompute is fixed at {}", recipe::to_string(*fixed.recompute)));
  differences.check(fixed.prefetch.has_value() && layout.gathers_each_use(), "prefetch",
                    fixed.prefetch.value_or(0), layout.prefetch);
  return differences.objection();
}

}  // namespace ptrain::plan
