// One rank of each place along a pipeline, looked at for all.
#include <gtest/gtest.h>

#include "core/mesh/part.h"
#include "core/program/compile.h"
#include "core/program/validate.h"
#include "tests/support/small_model.h"

namespace ptrain::program {
namespace {

class ValidatePlaces : public testing::Test {
 protected:
  // 64 ranks: two places of 32.
  ValidatePlaces() {
    recipe::Model model = support::small_model("llama");
    model.vocab_size = 64;
    model.num_hidden_layers = 4;
    const auto whole = *model::make_architecture(model, DType::kFloat32);
    for (int place = 0; place < layout_.pp; ++place) {
      mesh::Coordinates first;
      first.pp = place;
      const int rank = mesh::rank_of(layout_, first);
      parts_.push_back(*mesh::part_of(whole, layout_, rank));
      programs_.push_back(*compile({parts_.back(), layout_, "only"}, rank));
    }
  }

  Status validate() const {
    std::vector<const Program*> places;
    std::vector<const model::Architecture*> parts;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      places.push_back(&programs_[i]);
      parts.push_back(&parts_[i]);
    }
    return validate_places(places, parts, layout_);
  }

  mesh::Layout layout_{
      .dp = 4, .shard = 4, .tp = 2, .pp = 2, .schedule = "1f1b", .zero = 3, .num_micro_batches = 3};
  std::vector<model::Architecture> parts_;
  std::vector<Program> programs_;
};

TEST_F(ValidatePlaces, TakeWhatTheCompilerMakes) {
  const Status valid = validate();
  EXPECT_TRUE(valid) << valid.error().message;
}

TEST_F(ValidatePlaces, RefuseAPlaceThatWaitsForWhatNobodySends) {
  // The second place expects one micro-batch more.
  layout_.num_micro_batches = 4;
  mesh::Coordinates second;
  second.pp = 1;
  const int rank = mesh::rank_of(layout_, second);
  programs_[1] = *compile({parts_[1], layout_, "only"}, rank);
  EXPECT_FALSE(validate());
}

TEST_F(ValidatePlaces, RefuseOtherThanOneProgramAPlace) {
  programs_.pop_back();
  parts_.pop_back();
  EXPECT_FALSE(validate());
}

}  // namespace
}  // namespace ptrain::program
