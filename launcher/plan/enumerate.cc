#include "launcher/plan/enumerate.h"

#include <utility>

#include "launcher/plan/axes.h"

namespace ptrain::plan {

namespace {

class Enumerator {
 public:
  explicit Enumerator(const Space& space) : space_(space) {}

  // Sets the axes from `begin` up to `end`.
  Enumeration run(const mesh::Layout& before, std::size_t begin, std::size_t end) && {
    end_ = end;
    descend(begin, before);
    return std::move(out_);
  }

 private:
  // Sets the axes from `depth` on in every way that no rule forbids.
  void descend(std::size_t depth, const mesh::Layout& before) {
    if (depth == end_) return out_.legal.push_back(before);
    const Axis& axis = axes()[depth];
    for (const std::int64_t value : axis.values(before, space_)) {
      mesh::Layout layout = before;
      axis.set(layout, value, space_);
      if (!is_rejected(depth, layout)) descend(depth + 1, layout);
    }
  }

  bool is_rejected(std::size_t depth, const mesh::Layout& layout) {
    for (const Rule& rule : rules()) {
      if (rule.after != axes()[depth].name) continue;
      if (auto objection = rule.check(layout, space_)) {
        out_.rejected.push_back(rejected_for(layout, std::move(*objection)));
        out_.rejected.back().excess += distance(depth, layout);
        return true;
      }
    }
    return false;
  }

  // Of a reason, the layout that came furthest comes closest, then the one that is most like the
  // recipe. Axes that are not set yet differ in all layouts that a rule is asked about.
  double distance(std::size_t depth, const mesh::Layout& layout) const {
    constexpr double kFar = 1e9, kFarther = 1e11;
    const auto differences = is_as_fixed(layout, space_);
    return kFarther * static_cast<double>(axes().size() - depth) +
           (differences ? kFar * differences->excess : 0);
  }

  const Space& space_;
  std::size_t end_ = 0;
  Enumeration out_;
};

}  // namespace

Rejected rejected_for(const mesh::Layout& layout, Objection objection) {
  return {.layout = layout,
          .reason = std::move(objection.reason),
          .detail = std::move(objection.detail),
          .excess = objection.excess,
          .shortage = objection.shortage};
}

mesh::Layout without_axes(const Space& space) {
  mesh::Layout layout;
  layout.shared_window = space.shared_window;
  layout.offload = space.offload;
  return layout;
}

Enumeration enumerate(const Space& space) {
  return enumerate_axes(space, without_axes(space), 0, axes().size());
}

Enumeration enumerate_axes(const Space& space, const mesh::Layout& before, std::size_t begin,
                           std::size_t end) {
  return Enumerator(space).run(before, begin, end);
}

}  // namespace ptrain::plan
