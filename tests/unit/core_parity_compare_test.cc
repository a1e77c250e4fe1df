#include <gtest/gtest.h>

#include <cmath>

#include "core/parity/compare.h"

namespace ptrain::parity {
namespace {

using recipe::Precision;

Recorded recorded(const std::string& name, double value) {
  Recorded result{name, {}};
  result.sketch.add(0, value);
  return result;
}

void set(Records& records, Key key, double value) {
  records.at(key).sketch = {};
  records.at(key).sketch.add(0, value);
}

constexpr double kGradientOfA = 4, kGradientOfB = 1e-9;

// A parameter of one value, before and after an update of a half.
void add_parameter(Records& records, int position, const std::string& name, double gradient) {
  records[{Stage::kInitial, position, 0}] = recorded(name, 1);
  records[{Stage::kGradient, position, 0}] = recorded(name, gradient);
  records[{Stage::kGradient, position, 0}].weighed.add(0, gradient);
  records[{Stage::kUpdated, position, 0}] = recorded(name, 1.5);
  records[{Stage::kUpdated, position, 0}].weighed.add(0, 1.5 * gradient);
}

void set_updated_a(Records& records, int replica, double value) {
  const Key key{Stage::kUpdated, 0, replica};
  set(records, key, value);
  records.at(key).weighed = {};
  records.at(key).weighed.add(0, value * kGradientOfA);
}

// Two micro-batches through one block, and two parameters of which "b" hardly has a gradient.
Records one_rank() {
  Records records;
  for (int part = 0; part < 2; ++part) {
    records[{Stage::kRows, 0, part}] = recorded("tokens", 7);
    records[{Stage::kForward, 0, part}] = recorded("embedding", 2);
    records[{Stage::kForward, 1, part}] = recorded("block 0", 3);
    records[{Stage::kLoss, 0, part}] = recorded("sum over targets", 5);
    records[{Stage::kBackward, 0, part}] = recorded("block 0", 1);
  }
  add_parameter(records, 0, "a", kGradientOfA);
  add_parameter(records, 1, "b", kGradientOfB);
  records[{Stage::kStep, 0, 0}] = recorded("mean loss", 2.5);
  return records;
}

// The same of two replicas.
Records two_replicas() {
  Records records = one_rank();
  for (const auto& [key, value] : one_rank())
    if (is_of_parameters(key.stage)) records[{key.stage, key.position, 1}] = value;
  return records;
}

Comparison compared(const Records& layout, Precision precision = Precision::kFloat32) {
  const auto result = compare(layout, one_rank(), precision);
  EXPECT_TRUE(result) << result.error().message;
  return result.value_or(Comparison{});
}

TEST(Compare, EqualIsEqual) {
  const Comparison comparison = compared(two_replicas());
  EXPECT_TRUE(comparison.equal());
  ASSERT_EQ(comparison.stages.size(), 9u);
  EXPECT_EQ(comparison.stages[static_cast<std::size_t>(Stage::kForward)].num_compared, 4);
  EXPECT_EQ(comparison.stages[static_cast<std::size_t>(Stage::kGradient)].num_compared, 4);
}

TEST(Compare, NamesTheFirstSegmentInTheOrderOfTheStep) {
  Records layout = two_replicas();
  set(layout, {Stage::kBackward, 0, 0}, 1.1);
  set(layout, {Stage::kLoss, 0, 1}, 5.1);
  set(layout, {Stage::kForward, 1, 1}, 3.003);
  const Comparison comparison = compared(layout);
  ASSERT_TRUE(comparison.first_segment);
  EXPECT_EQ(describe(*comparison.first_segment), "forward: block 0, micro-batch 1");
  EXPECT_NEAR(comparison.first_segment->relative, 1e-3, 1e-9);
  EXPECT_FALSE(comparison.first_parameter);
}

TEST(Compare, NamesTheFirstParameterAndItsReplica) {
  Records layout = two_replicas();
  set(layout, {Stage::kGradient, 0, 1}, 4.1);
  set_updated_a(layout, 1, 1.4);
  const Comparison comparison = compared(layout);
  EXPECT_FALSE(comparison.first_segment);
  ASSERT_TRUE(comparison.first_parameter);
  EXPECT_EQ(describe(*comparison.first_parameter), "gradients: a, replica 1");
}

TEST(Compare, TheTolerancesAreThoseOfThePrecision) {
  Records layout = two_replicas();
  set(layout, {Stage::kForward, 0, 0}, 2 * (1 + 1e-6));
  EXPECT_TRUE(compared(layout, Precision::kFloat32).equal());
  EXPECT_FALSE(compared(layout, Precision::kFloat64).equal());
  set(layout, {Stage::kForward, 0, 0}, 2 * (1 + 1e-3));
  EXPECT_FALSE(compared(layout, Precision::kFloat32).equal());
  EXPECT_TRUE(compared(layout, Precision::kBFloat16).equal());
}

TEST(Compare, RowsAndInitialValuesAreTheSameBits) {
  Records layout = two_replicas();
  set(layout, {Stage::kInitial, 1, 1}, 1 + 1e-7);
  EXPECT_FALSE(compared(layout, Precision::kBFloat16).equal());
}

// The update is measured by the way that the parameter went: 0.5.
TEST(Compare, UpdatesAreMeasuredByTheirWay) {
  Records layout = two_replicas();
  set_updated_a(layout, 0, 1.5 + 0.5 * 2e-3);
  const Comparison comparison = compared(layout);
  ASSERT_TRUE(comparison.first_parameter);
  EXPECT_NEAR(comparison.first_parameter->relative, 2e-3, 1e-6);
  set_updated_a(layout, 0, 1.5 + 1.5e-7);  // its last bit
  EXPECT_TRUE(compared(layout).equal());
}

TEST(Compare, WhatIsOnlyRoundingIsLeftOut) {
  Records layout = two_replicas();
  set(layout, {Stage::kGradient, 1, 0}, -1e-9);
  set(layout, {Stage::kUpdated, 1, 0}, 0.5);
  const Comparison comparison = compared(layout);
  EXPECT_TRUE(comparison.equal());
  EXPECT_EQ(comparison.stages.back().num_noise, 2);
  EXPECT_EQ(comparison.stages.back().num_compared, 2);
}

// A first step of AdamW of a parameter of 128 values: each goes the learning rate against the sign
// of its gradient, whatever the gradient's size. Value 99 has a gradient near zero, whose sign the
// layout's rounding turned.
class FirstStep {
 public:
  static constexpr int kSize = 128;
  double rate = 1e-3, decay = 0.1, noise = 0;
  int num_updated = kSize;  // the rest stays as it was
  double garbage = 0;       // on value 7, which has no gradient

  Records records() const {
    Records records;
    for (const Stage stage : {Stage::kInitial, Stage::kGradient, Stage::kUpdated})
      records[{stage, 0, 0}].name = "a";
    for (int i = 0; i < kSize; ++i) add(records, i);
    return records;
  }

 private:
  static double initial(int i) { return std::cos(i) + 2; }
  double gradient(int i) const {
    if (i == 7) return 0;
    return i == 99 ? 1e-4 - 2.5 * noise : std::sin(i) + noise * std::cos(3 * i);
  }
  double updated(int i) const {
    if (i >= num_updated) return initial(i);
    const double sign = gradient(i) > 0 ? 1 : gradient(i) < 0 ? -1 : 0;
    return initial(i) * (1 - rate * decay) - rate * sign + (i == 7 ? garbage : 0);
  }
  void add(Records& records, int i) const {
    records[{Stage::kInitial, 0, 0}].sketch.add(i, initial(i));
    records[{Stage::kGradient, 0, 0}].sketch.add(i, gradient(i));
    records[{Stage::kGradient, 0, 0}].weighed.add(i, initial(i) * gradient(i));
    records[{Stage::kUpdated, 0, 0}].sketch.add(i, updated(i));
    records[{Stage::kUpdated, 0, 0}].weighed.add(i, updated(i) * gradient(i));
  }
};

StageResult updates(const FirstStep& layout) {
  const auto result = compare(layout.records(), FirstStep().records(), Precision::kBFloat16);
  EXPECT_TRUE(result) << result.error().message;
  return result ? result->stages.back() : StageResult{};
}

TEST(CompareUpdates, ATurnedSignOfAGradientNearZeroIsNoDifference) {
  FirstStep layout;
  layout.noise = 1e-3;
  const Records turned = layout.records(), truth = FirstStep().records();
  const Key updated{Stage::kUpdated, 0, 0};
  EXPECT_GT(distance(turned.at(updated).sketch, truth.at(updated).sketch), 1.9e-3);  // 2 x rate
  const StageResult result = updates(layout);
  EXPECT_EQ(result.num_different, 0);
  EXPECT_GT(result.largest.relative, 0);
  EXPECT_LT(result.largest.relative, 2e-3);
}

// Each with that sign turned too.
TEST(CompareUpdates, WrongOnesAreFound) {
  const auto differs = [](auto&& change) {
    FirstStep layout;
    layout.noise = 1e-3;
    change(layout);
    return updates(layout).num_different == 1;
  };
  EXPECT_TRUE(differs([](FirstStep& layout) { layout.rate *= 1.2; }));
  EXPECT_TRUE(differs([](FirstStep& layout) { layout.rate *= -1; }));
  EXPECT_TRUE(differs([](FirstStep& layout) { layout.decay = 0; }));
  EXPECT_TRUE(differs([](FirstStep& layout) { layout.num_updated = 0; }));
  EXPECT_TRUE(differs([](FirstStep& layout) { layout.num_updated = FirstStep::kSize / 2; }));
  EXPECT_TRUE(differs([](FirstStep& layout) { layout.garbage = 1; }));
  EXPECT_TRUE(differs([](FirstStep& layout) { layout.garbage = std::nan(""); }));
}

TEST(Compare, NotANumberDiffers) {
  Records layout = two_replicas();
  set(layout, {Stage::kForward, 0, 0}, std::nan(""));
  const Comparison comparison = compared(layout);
  ASSERT_TRUE(comparison.first_segment);
  EXPECT_TRUE(std::isnan(comparison.first_segment->relative));
}

// A token near a tie: whatever follows differs too, but the choice is named.
TEST(Compare, ChoicesOfExpertsComeFirst) {
  const auto with_choices = [](Records records, Choices choices) {
    Recorded& router = records[{Stage::kRouting, 1, 0}];
    router.name = "router of block 0";
    router.choices = std::move(choices);
    return records;
  };
  const Records truth = with_choices(one_rank(), {{0, {1, 2}}, {1, {0, 3}}, {2, {~2, 1}}});
  Records layout = with_choices(two_replicas(), {{0, {1, 2}}, {1, {0, 2}}, {2, {1, 2}}});
  set(layout, {Stage::kForward, 0, 0}, 2.1);
  const auto found = compare(layout, truth, Precision::kFloat32);
  ASSERT_TRUE(found && found->first_segment);
  EXPECT_EQ(describe(*found->first_segment),
            "choices of experts: router of block 0, micro-batch 0: token 1 chose experts 0, 2, on "
            "one rank 0, 3");
  EXPECT_DOUBLE_EQ(found->first_segment->relative, 2.0 / 3);
  layout = with_choices(layout, {{0, {1, 2}}, {1, {0, 3}}, {2, {1, 2}}});
  EXPECT_EQ(describe(*compare(layout, truth, Precision::kFloat32)->first_segment),
            "choices of experts: router of block 0, micro-batch 0: token 2 chose experts 1, 2, on "
            "one rank 2 without room, 1");
  layout = with_choices(layout, truth.at({Stage::kRouting, 1, 0}).choices);
  EXPECT_EQ(describe(*compare(layout, truth, Precision::kFloat32)->first_segment),
            "forward: embedding, micro-batch 0");
}

TEST(Compare, WhatOneSideLacksIsAnError) {
  Records layout = two_replicas();
  layout.erase({Stage::kForward, 1, 1});
  const auto result = compare(layout, one_rank(), Precision::kFloat32);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "the layout recorded nothing for forward: block 0, micro-batch 1");
  EXPECT_FALSE(compare(two_replicas(), layout, Precision::kFloat32));
}

TEST(Record, ReadsWhatItWrites) {
  Records records = one_rank();
  set(records, {Stage::kForward, 0, 0}, 1.0 / 3);
  records[{Stage::kRouting, 1, 0}] = {"router of block 0", {}, {{3, {~1, 2}}, {17, {0, 5}}}, {}};
  const auto read = records_from_text(to_text(records), "file");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, records);
  set(records, {Stage::kForward, 0, 0}, std::nan(""));
  const auto with_nan = records_from_text(to_text(records), "file");
  ASSERT_TRUE(with_nan);
  EXPECT_TRUE(std::isnan(with_nan->at({Stage::kForward, 0, 0}).sketch.norm()));
}

TEST(Record, DamageIsNamed) {
  for (const char* text : {"{}", "[1]", "[[0,0,0,\"tokens\",[1],[]]]", "[[99,0,0,\"a\",[],[]]]",
                           "[[0,-1,0,\"a\",[],[]]]", "["})
    EXPECT_FALSE(records_from_text(text, "file")) << text;
  const Records router = {{{Stage::kRouting, 0, 0}, {"router of block 0", {}, {{3, {1, 2}}}, {}}}};
  const std::string whole = to_text(router), choice = "[3,1,2]";
  for (const char* damaged : {"[]", "3", "[3,\"a\"]", "[3.5]"}) {
    std::string text = whole;
    text.replace(text.find(choice), choice.size(), damaged);
    EXPECT_FALSE(records_from_text(text, "file")) << text;
  }
}

}  // namespace
}  // namespace ptrain::parity
