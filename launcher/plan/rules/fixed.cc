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

void check_degrees(const mesh::Layout& layout, const Space& space, Differences& differences) {
  const recipe::Parallel& fixed = space.fixed;
  differences.check(fixed.dp > 0, "dp", fixed.dp, layout.dp);
  differences.check(fixed.shard > 0, "shard", fixed.shard, layout.shard);
  differences.check(fixed.tp > 0, "tp", fixed.tp, layout.tp);
  differences.check(fixed.pp > 0, "pp", fixed.pp, layout.pp);
  differences.check(fixed.ring > 0, "cp.ring", fixed.ring, layout.cp / layout.ulysses);
  differences.check(fixed.ulysses > 0, "cp.ulysses", fixed.ulysses, layout.ulysses);
  differences.check(fixed.ep > 0, "ep", fixed.ep, layout.ep);
  differences.check(fixed.etp > 0, "etp", fixed.etp, layout.etp);
}

// Without a shard axis zero has no meaning; it is then only an offence where sharding was possible.
void check_zero(const mesh::Layout& layout, const Space& space, Differences& differences) {
  const bool could_shard = space.num_ranks > layout.pp * layout.tp * layout.cp;
  const bool matters = layout.num_shards() > 1 || (space.fixed.shard == 0 && could_shard);
  differences.check(space.fixed.zero > 0 && matters, "zero", space.fixed.zero,
                    layout.num_shards() > 1 ? layout.zero : -1);
}

void check_micro_batch(const mesh::Layout& layout, const Space& space, Differences& differences) {
  const std::int64_t wanted = space.fixed.micro_batch;
  differences.check(wanted > 0, "micro_batch", wanted, layout.micro_batch);
}

void check_pipeline(const mesh::Layout& layout, const Space& space, Differences& differences) {
  const recipe::Parallel& fixed = space.fixed;
  differences.check(fixed.num_virtual > 0, "virtual", fixed.num_virtual, layout.num_virtual);
  if (!fixed.schedule.empty() && layout.num_stages() == 1)
    differences.add(fmt::format("schedule is fixed at {}", fixed.schedule));
  if (!fixed.stages.empty() && layout.num_stages() == 1)
    differences.add(fmt::format("stages are fixed at {}", fixed.stages));
}

void check_recompute(const mesh::Layout& layout, const Space& space, Differences& differences) {
  const auto& wanted = space.fixed.recompute;
  if (wanted && *wanted != layout.recompute)
    differences.add(fmt::format("recompute is fixed at {}", recipe::to_string(*wanted)));
}

void check_prefetch(const mesh::Layout& layout, const Space& space, Differences& differences) {
  const std::optional<int>& wanted = space.fixed.prefetch;
  differences.check(wanted.has_value() && layout.gathers_each_use(), "prefetch", wanted.value_or(0),
                    layout.prefetch);
}

// What all of these checks find.
template <auto... checks>
std::optional<Objection> objection_of(const mesh::Layout& layout, const Space& space) {
  Differences differences;
  (checks(layout, space, differences), ...);
  return differences.objection();
}

}  // namespace

std::optional<Objection> degrees_are_as_fixed(const mesh::Layout& layout, const Space& space) {
  return objection_of<check_degrees>(layout, space);
}

std::optional<Objection> zero_is_as_fixed(const mesh::Layout& layout, const Space& space) {
  return objection_of<check_zero>(layout, space);
}

std::optional<Objection> micro_batch_is_as_fixed(const mesh::Layout& layout, const Space& space) {
  return objection_of<check_micro_batch>(layout, space);
}

std::optional<Objection> pipeline_is_as_fixed(const mesh::Layout& layout, const Space& space) {
  return objection_of<check_pipeline>(layout, space);
}

std::optional<Objection> recompute_is_as_fixed(const mesh::Layout& layout, const Space& space) {
  return objection_of<check_recompute>(layout, space);
}

std::optional<Objection> is_as_fixed(const mesh::Layout& layout, const Space& space) {
  return objection_of<check_degrees, check_zero, check_micro_batch, check_pipeline, check_recompute,
                      check_prefetch>(layout, space);
}

}  // namespace ptrain::plan
