#include <gtest/gtest.h>

#include "core/dcp/boxes.h"
#include "core/dcp/import.h"
#include "core/model/names.h"
#include "tests/support/small_llama.h"

namespace ptrain::dcp {
namespace {

model::Architecture small(bool tied = false) { return support::small_llama(2, tied); }

// A checkpoint with the model's tensors behind `prefix`, by names that `rename` gives.
template <class Rename>
void add_model(Metadata& metadata, const std::string& prefix, Rename rename) {
  for (const auto& parameter : small().parameters)
    metadata.tensors[prefix + rename(parameter.name)] = {"float32", parameter.shape, {}};
}

std::string same(const std::string& name) { return name; }
std::string old_torchtitan(const std::string& name) {
  const auto names = model::torchtitan_names(name);
  return name == "lm_head.weight" ? "output.weight" : names.front();
}
std::string new_torchtitan(const std::string& name) { return model::torchtitan_names(name).back(); }

template <class Rename>
void add_state(Metadata& metadata, const std::string& prefix, Rename rename) {
  for (const auto& parameter : small().parameters) {
    for (const char* moment : {".exp_avg", ".exp_avg_sq"})
      metadata.tensors[prefix + rename(parameter.name) + moment] = {"float32", parameter.shape, {}};
    metadata.tensors[prefix + rename(parameter.name) + ".step"] = {"float32", {}, {}};
  }
}

std::string refusal(const Metadata& metadata) {
  const auto import = find_parameters(metadata, small());
  EXPECT_FALSE(import);
  if (import) return "";
  EXPECT_EQ(import.error().code, ExitCode::kUnusable);
  return import.error().message;
}

TEST(Import, FindsEachPrefixOfParametersAndState) {
  for (const std::string model : {"model.", "module.", ""})
    for (const std::string state : {"optim.state.", "optimizer.state."}) {
      Metadata metadata;
      add_model(metadata, model, same);
      add_state(metadata, state + model, same);
      const auto import = find_parameters(metadata, small());
      ASSERT_TRUE(import) << import.error().message;
      EXPECT_EQ(import->parameters[1].key, model + "model.layers.0.input_layernorm.weight");
      EXPECT_EQ(import->parameters[1].state, state + import->parameters[1].key);
      EXPECT_TRUE(import->has_moments);
      EXPECT_TRUE(import->unread.empty());
      EXPECT_EQ(step_key(metadata, *import), state + model + "model.embed_tokens.weight.step");
    }
}

// The names of torchtitan's llama, written down from its source.
TEST(Import, KnowsTorchtitansNames) {
  EXPECT_EQ(model::torchtitan_names("model.layers.11.self_attn.k_proj.weight"),
            (std::vector<std::string>{"layers.11.attention.wk.weight",
                                      "layers.11.attention.qkv_linear.wk.weight"}));
  EXPECT_EQ(model::torchtitan_names("model.layers.0.mlp.up_proj.weight"),
            std::vector<std::string>{"layers.0.feed_forward.w3.weight"});
  EXPECT_EQ(model::torchtitan_names("model.layers.0.mlp.down_proj.weight"),
            std::vector<std::string>{"layers.0.feed_forward.w2.weight"});
  for (const auto& parameter : small().parameters)
    EXPECT_FALSE(model::torchtitan_names(parameter.name).empty()) << parameter.name;
  Metadata metadata;
  add_model(metadata, "", old_torchtitan);
  add_state(metadata, "optimizer.state.", old_torchtitan);
  const auto import = find_parameters(metadata, small());
  ASSERT_TRUE(import) << import.error().message;
  EXPECT_EQ(import->parameters.back(),
            (ParameterSource{"output.weight", "optimizer.state.output.weight", 0}));
  EXPECT_EQ(import->parameters[2].head_rows, 4);  // queries: 8 / 2 heads
  EXPECT_EQ(import->parameters[3].head_rows, 4);
  EXPECT_EQ(import->parameters[4].head_rows, 0);  // values are not turned
  Metadata newer;
  add_model(newer, "model.", new_torchtitan);
  const auto moved = find_parameters(newer, small());
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_FALSE(moved->has_moments);
  EXPECT_EQ(step_key(newer, *moved), std::nullopt);
}

TEST(Import, NoneOrTwoNamingsAreRefused) {
  Metadata metadata;
  add_model(metadata, "model.", same);
  metadata.tensors.erase("model.lm_head.weight");
  metadata.tensors["model.stranger"] = {"float32", {3}, {}};
  const std::string none = refusal(metadata);
  for (const char* part : {"Hugging Face names behind 'model.', of which 1 are missing",
                           "model.lm_head.weight", "model.stranger"})
    EXPECT_NE(none.find(part), std::string::npos) << none;
  add_model(metadata, "model.", same);
  add_model(metadata, "", old_torchtitan);
  EXPECT_NE(
      refusal(metadata).find("two models: Hugging Face names behind 'model.', and torchtitan"),
      std::string::npos);
}

TEST(Import, StateInPartOrTwiceIsRefused) {
  Metadata metadata;
  add_model(metadata, "model.", same);
  add_state(metadata, "optim.state.", same);
  metadata.tensors.erase("optim.state.model.norm.weight.exp_avg_sq");
  EXPECT_NE(refusal(metadata).find("\n  optim.state.model.norm.weight.exp_avg_sq"),
            std::string::npos);
  add_state(metadata, "optim.state.", same);
  add_state(metadata, "optimizer.state.", same);
  EXPECT_NE(refusal(metadata).find("twice: behind 'optim.state.' and 'optimizer.state.'"),
            std::string::npos);
}

TEST(Import, EveryWrongShapeIsListed) {
  Metadata metadata;
  add_model(metadata, "", same);
  metadata.tensors["model.norm.weight"].shape = {9};
  metadata.tensors["lm_head.weight"].shape = {64, 4};
  const std::string message = refusal(metadata);
  EXPECT_NE(message.find("'model.norm.weight' has the shape [9] instead of [8]"), std::string::npos)
      << message;
  EXPECT_NE(message.find("'lm_head.weight' has the shape [64, 4] instead of [64, 8]"),
            std::string::npos)
      << message;
}

TEST(Import, ATiedModelLeavesTheHeadUnread) {
  Metadata metadata;
  add_model(metadata, "", same);
  const auto import = find_parameters(metadata, small(true));
  ASSERT_TRUE(import) << import.error().message;
  EXPECT_EQ(import->unread, std::vector<std::string>{"lm_head.weight"});
}

// Against the definition: Hugging Face's row (head, half, pair) is torchtitan's (head, pair, half).
TEST(Pieces, InterleavedRowsOfEveryRun) {
  const std::int64_t rows = 12, columns = 3, head = 6;
  const auto stored_of = [&](std::int64_t element) {
    const std::int64_t row = element / columns, in_head = row % head;
    const std::int64_t half = in_head / (head / 2), pair = in_head % (head / 2);
    return (row / head * head + pair * 2 + half) * columns + element % columns;
  };
  for (std::int64_t begin = 0; begin <= rows * columns; ++begin)
    for (std::int64_t end = begin; end <= rows * columns; ++end) {
      std::int64_t at = begin;
      for (const Piece& piece : pieces_of_run({rows, columns}, {begin, end}, head)) {
        EXPECT_EQ(piece.target, at - begin);
        for (std::int64_t i = piece.stored.begin; i < piece.stored.end; ++i)
          EXPECT_EQ(i, stored_of(at++));
      }
      EXPECT_EQ(at, end);
    }
  EXPECT_EQ(pieces_of_run({rows, columns}, {4, 9}, 0), (std::vector<Piece>{{{4, 9}, 0}}));
}

}  // namespace
}  // namespace ptrain::dcp
