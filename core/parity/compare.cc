#include "core/parity/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ptrain::parity {

namespace {

using recipe::Precision;

// Gradients below this share of the whole gradient's norm are measured by that share: a parameter
// whose true gradient is zero, such as the bias of keys, holds nothing but rounding.
constexpr double kSmallGradient = 1e-2;

// How far a parameter may lie from the reference's, in lengths of the latter's update.
constexpr double kFarthestAstray = 1;

double epsilon(Precision precision) {
  return precision == Precision::kFloat64 ? std::numeric_limits<double>::epsilon()
                                          : std::numeric_limits<float>::epsilon();
}

double relative(double distance, double scale) {
  if (distance == 0) return 0;
  return scale > 0 ? distance / scale : std::numeric_limits<double>::infinity();
}

// What is more than a last bit of values of this norm; NaN stays.
double beyond_rounding(double distance, double norm, Precision precision) {
  return std::isnan(distance) ? distance : std::max(0.0, distance - epsilon(precision) * norm);
}

// NaN counts as larger than any number.
bool is_larger(double a, double b) { return !std::isnan(b) && (std::isnan(a) || a > b); }

double norm_of_all(const Records& records, Stage stage) {
  double squares = 0;
  for (const auto& [key, recorded] : records)
    if (key.stage == stage) squares += std::pow(recorded.sketch.norm(), 2);
  return std::sqrt(squares);
}

// "2, 5"
std::string text_of(const std::vector<std::int32_t>& experts) {
  std::string text;
  for (const std::int32_t expert : experts) {
    if (!text.empty()) text += ", ";
    text += expert < 0 ? fmt::format("{} without room", ~expert) : std::to_string(expert);
  }
  return text.empty() ? "none" : text;
}

// Sets what share of the tokens goes elsewhere, and says of the first where.
void compare_choices(const Choices& mine, const Choices& truth, Difference& difference) {
  std::size_t num_different = 0;
  for (const auto& [token, experts] : truth) {
    const auto found = mine.find(token);
    const auto chosen = found == mine.end() ? std::vector<std::int32_t>() : found->second;
    if (chosen == experts || num_different++ > 0) continue;
    difference.detail = fmt::format("token {} chose experts {}, on one rank {}", token,
                                    text_of(chosen), text_of(experts));
  }
  difference.relative =
      truth.empty() ? 0 : static_cast<double>(num_different) / static_cast<double>(truth.size());
}

class Comparer {
 public:
  Comparer(const Records& layout, const Records& reference, Precision precision)
      : layout_(layout),
        reference_(reference),
        precision_(precision),
        small_gradient_(kSmallGradient * norm_of_all(reference, Stage::kGradient)) {
    for (int i = 0; i < kNumStages; ++i)
      result_.stages.emplace_back().stage = static_cast<Stage>(i);
  }

  Result<Comparison> run() {
    for (const auto& [key, recorded] : reference_)
      if (!layout_.contains(key)) return lacks(key, recorded, "the layout");
    for (const auto& [key, recorded] : layout_) {
      const auto found = reference_.find(of_reference(key));
      if (found == reference_.end()) return lacks(key, recorded, "one rank");
      take(key, recorded, found->second);
    }
    return std::move(result_);
  }

 private:
  // The one rank is the only replica of its parameters.
  static Key of_reference(Key key) {
    if (is_of_parameters(key.stage)) key.part = 0;
    return key;
  }

  static tl::unexpected<Error> lacks(const Key& key, const Recorded& recorded, const char* side) {
    return fail(ExitCode::kUnusable,
                fmt::format("{} recorded nothing for {}", side, describe({key, recorded.name})),
                "this is a bug of ptrain; please report it");
  }

  void take(const Key& key, const Recorded& mine, const Recorded& truth) {
    StageResult& stage = result_.stages[static_cast<std::size_t>(key.stage)];
    if (key.stage == Stage::kUpdated && is_noise(key)) return void(++stage.num_noise);
    Difference difference{key, mine.name, apart(key, mine, truth),
                          tolerance(key.stage, precision_)};
    if (key.stage == Stage::kRouting) compare_choices(mine.choices, truth.choices, difference);
    if (stage.num_compared++ == 0 || is_larger(difference.relative, stage.largest.relative))
      stage.largest = difference;
    if (!difference.differs()) return;
    ++stage.num_different;
    auto& first = is_of_parameters(key.stage) ? result_.first_parameter : result_.first_segment;
    if (!first) first = difference;
  }

  double apart(const Key& key, const Recorded& mine, const Recorded& truth) const {
    if (key.stage == Stage::kUpdated) return updates_apart(key, mine, truth);
    const double norm = truth.sketch.norm();
    return relative(distance(mine.sketch, truth.sketch),
                    key.stage == Stage::kGradient ? std::max(norm, small_gradient_) : norm);
  }

  // A last bit of the parameter itself is no difference of its update.
  double updates_apart(const Key& key, const Recorded& mine, const Recorded& truth) const {
    const double way = distance(truth.sketch, earlier(reference_, Stage::kInitial, key).sketch);
    const double astray = relative(
        beyond_rounding(distance(mine.sketch, truth.sketch), truth.sketch.norm(), precision_), way);
    if (!(astray <= kFarthestAstray)) return astray;
    const Sketch step = weighed_step(reference_, key, truth);
    const double far = distance(weighed_step(layout_, key, mine), step);
    return relative(beyond_rounding(far, truth.weighed.norm(), precision_), step.norm());
  }

  static Sketch weighed_step(const Records& records, const Key& key, const Recorded& updated) {
    Sketch step = updated.weighed;
    step.add(earlier(records, Stage::kGradient, key).weighed, -1);
    return step;
  }

  bool is_noise(const Key& key) const {
    return earlier(reference_, Stage::kGradient, key).sketch.norm() <=
           tolerance(Stage::kGradient, precision_) * small_gradient_;
  }

  // Of the same parameter in another stage: of this replica, which one rank has but one of.
  static Recorded earlier(const Records& records, Stage stage, Key key) {
    key.stage = stage;
    auto found = records.find(key);
    if (found == records.end()) found = records.find(of_reference(key));
    return found == records.end() ? Recorded{} : found->second;
  }

  const Records& layout_;
  const Records& reference_;
  Precision precision_;
  double small_gradient_;
  Comparison result_;
};

}  // namespace

// Rows and initial values are the same bits; only the sums of a sketch may be rounded. What float64
// and float32 may differ by is what layouts are tested with. In bfloat16 a product is rounded to 8
// bits, so that sums in another order may differ in the last of them, a few parts in a thousand.
double tolerance(Stage stage, Precision precision) {
  if (stage == Stage::kRows) return 0;  // sums of whole numbers
  if (stage == Stage::kRouting) return 0;
  if (stage == Stage::kInitial) return 1e-13;
  const bool updated = stage == Stage::kUpdated;
  switch (precision) {
    case Precision::kFloat64:
      return updated ? 1e-6 : 1e-9;
    case Precision::kFloat32:
      return updated ? 1e-3 : 1e-5;
    case Precision::kBFloat16:
      return updated ? 1e-1 : stage == Stage::kLoss ? 1e-3 : 1e-2;
  }
  return 0;
}

Result<Comparison> compare(const Records& layout, const Records& reference, Precision precision) {
  return Comparer(layout, reference, precision).run();
}

std::string describe(const Difference& difference) {
  std::string part;
  if (is_of_parameters(difference.key.stage))
    part = fmt::format(", replica {}", difference.key.part);
  else if (difference.key.stage != Stage::kStep)
    part = fmt::format(", micro-batch {}", difference.key.part);
  const std::string detail = difference.detail.empty() ? "" : ": " + difference.detail;
  return fmt::format("{}: {}{}{}", to_string(difference.key.stage), difference.name, part, detail);
}

}  // namespace ptrain::parity
