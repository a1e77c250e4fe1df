#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "core/model/architecture.h"
#include "tests/support/small_model.h"

namespace ptrain::model {
namespace {

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

recipe::Model free_head() {
  recipe::Model config;
  config.hidden_size = 24;
  config.intermediate_size = 40;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 6;
  config.num_key_value_heads = 2;
  config.head_dim = 8;
  config.vocab_size = 320;
  return config;
}

recipe::Model tied_head() {
  recipe::Model config;
  config.hidden_size = 16;
  config.intermediate_size = 24;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 4;
  config.vocab_size = 64;
  config.tie_word_embeddings = true;
  return config;
}

Shapes hugging_face_shapes(const std::string& name) {
  const std::string root = std::getenv("PTRAIN_SOURCE_DIR");
  std::ifstream file(root + "/tests/fixtures/model/" + name);
  EXPECT_TRUE(file) << name;
  Shapes shapes;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    for (std::int64_t size; words >> size;) shapes[key].push_back(size);
  }
  return shapes;
}

Shapes our_shapes(const recipe::Model& config) {
  Shapes shapes;
  const Architecture architecture = *make_architecture(config, DType::kFloat32);
  for (const ParameterSpec& p : architecture.parameters) shapes[p.name] = p.shape;
  return shapes;
}

std::int64_t stash_elements(const LayerSpec& layer) {
  std::int64_t sum = 0;
  for (const StashTensor& tensor : layer.stash) sum += tensor.elements_per_token;
  return sum;
}

std::string error_of(recipe::Model config) {
  const auto result = make_architecture(config, DType::kFloat32);
  EXPECT_FALSE(result);
  if (result) return "";
  EXPECT_EQ(result.error().code, ExitCode::kUsage);
  EXPECT_FALSE(result.error().hint.empty());
  return result.error().message;
}

TEST(Llama, NamesAndShapesAreThoseOfHuggingFace) {
  EXPECT_EQ(our_shapes(free_head()), hugging_face_shapes("llama_free.txt"));
  EXPECT_EQ(our_shapes(tied_head()), hugging_face_shapes("llama_tied.txt"));
}

TEST(Llama, BlockOrderKeepsFusedMatricesTogether) {
  const Architecture a = *make_architecture(free_head(), DType::kFloat32);
  std::vector<std::string> names;
  for (int p : a.layers[1].parameters) {
    names.push_back(a.parameters[static_cast<std::size_t>(p)].name);
  }
  const std::string prefix = "model.layers.0.";
  EXPECT_EQ(names, (std::vector<std::string>{
                       prefix + "input_layernorm.weight", prefix + "self_attn.q_proj.weight",
                       prefix + "self_attn.k_proj.weight", prefix + "self_attn.v_proj.weight",
                       prefix + "self_attn.o_proj.weight",
                       prefix + "post_attention_layernorm.weight", prefix + "mlp.gate_proj.weight",
                       prefix + "mlp.up_proj.weight", prefix + "mlp.down_proj.weight"}));
}

TEST(Llama, LayersGroupsAndTying) {
  const Architecture free = *make_architecture(free_head(), DType::kFloat32);
  ASSERT_EQ(free.num_groups(), 4);
  EXPECT_EQ(free.layers[0].kind, LayerKind::kEmbedding);
  EXPECT_EQ(free.layers[2].kind, LayerKind::kBlock);
  EXPECT_EQ(free.layers[3].kind, LayerKind::kHead);
  EXPECT_EQ(free.layers[3].groups, std::vector<int>{3});
  for (const LayerSpec& layer : free.layers) {
    for (int p : layer.parameters) {
      EXPECT_EQ(free.parameters[static_cast<std::size_t>(p)].group, layer.index);
    }
  }
  const Architecture tied = *make_architecture(tied_head(), DType::kFloat32);
  EXPECT_EQ(tied.layers[2].groups, (std::vector<int>{0, 2}));
  ASSERT_EQ(tied.layers[2].parameters.size(), 2u);
  EXPECT_EQ(tied.layers[2].parameters[1], 0);
}

// H 24, A 48, K 16, F 40, 6 heads, by hand:
// x 24 + norm1 24 + 1 + qkv 80 + attention 48 + lse 6 + x2 24 + norm2 24 + 1 + 80 + 40.
TEST(Llama, StashByHand) {
  const Architecture a = *make_architecture(free_head(), DType::kFloat64);
  EXPECT_TRUE(a.layers[0].stash.empty());
  EXPECT_EQ(stash_elements(a.layers[1]), 352);
  EXPECT_EQ(stash_elements(a.layers[3]), 24);
  EXPECT_EQ(a.layers[1].stash.front().stash_class, StashClass::kInput);
  for (const StashTensor& tensor : a.layers[1].stash) EXPECT_EQ(tensor.dtype, DType::kFloat64);
}

std::vector<std::string> remade(const LayerSpec& layer) {
  std::vector<std::string> names;
  for (const StashTensor& tensor : layer.stash)
    if (tensor.stash_class == StashClass::kRemade) names.push_back(tensor.name);
  return names;
}

// A norm is remade from what it reads, which is there: the input, or what a product was added into.
// With norms after the products these are kept before the norm instead, and x2 is remade too.
TEST(Stash, NoProductIsMadeTwice) {
  using Names = std::vector<std::string>;
  const auto block = [](const char* family) {
    return make_architecture(support::small_model(family), DType::kFloat32)->layers[1];
  };
  EXPECT_EQ(remade(block("llama")),
            (Names{"norm1", "norm1_scale", "norm2", "norm2_scale", "product"}));
  EXPECT_EQ(remade(block("gpt2")), remade(block("llama")));
  EXPECT_EQ(remade(block("qwen3")), (Names{"norm1", "norm1_scale", "query_key", "query_key_scale",
                                           "norm2", "norm2_scale", "product"}));
  EXPECT_EQ(remade(block("gemma3")),
            (Names{"norm1", "norm1_scale", "query_key", "query_key_scale", "output_scale", "x2",
                   "norm2", "norm2_scale", "product"}));
}

TEST(Llama, InitialValuesAndDecay) {
  const Architecture a = *make_architecture(free_head(), DType::kFloat32);
  for (const ParameterSpec& p : a.parameters) {
    const bool residual =
        p.name.find("o_proj") != std::string::npos || p.name.find("down_proj") != std::string::npos;
    const bool norm = p.name.find("norm") != std::string::npos;
    const Init expected = norm ? Init::kOnes : residual ? Init::kResidualNormal : Init::kNormal;
    EXPECT_EQ(p.init, expected) << p.name;
    EXPECT_EQ(p.decays, !norm) << p.name;
    EXPECT_EQ(p.block, BlockKind::kElement);
  }
}

// A block has (48 + 2 * 16 + 48) * 24 + 3 * 24 * 40 = 5952 matmul parameters; head 320 * 24 = 7680.
TEST(Llama, CountsAndFlopsByHand) {
  const Architecture free = *make_architecture(free_head(), DType::kFloat32);
  EXPECT_EQ(free.num_matmul_parameters(), 2 * 5952 + 7680);
  EXPECT_EQ(free.num_parameters(), 2 * (5952 + 48) + 2 * 7680 + 24);
  EXPECT_DOUBLE_EQ(train_flops_per_token(free, 128), 6.0 * 19584 + 6.0 * 2 * 48 * 128);
  // Tied: (4 * 16 * 16 + 3 * 16 * 24) in the block, 64 * 16 in the head, once.
  const Architecture tied = *make_architecture(tied_head(), DType::kFloat32);
  EXPECT_EQ(tied.num_matmul_parameters(), 1024 + 1152 + 1024);
  EXPECT_EQ(tied.num_parameters(), 1024 + 1152 + 1024 + 3 * 16);
}

TEST(Llama, SegmentFlopsAddUpToTheParameters) {
  const Architecture a = *make_architecture(free_head(), DType::kFloat32);
  double per_token = 0, per_pair = 0;
  for (const LayerSpec& layer : a.layers) {
    for (const Segment& segment : layer.segments) {
      per_token += segment.flops_per_token;
      per_pair += segment.flops_per_attended_pair;
    }
  }
  EXPECT_DOUBLE_EQ(per_token, 2.0 * static_cast<double>(a.num_matmul_parameters()));
  EXPECT_DOUBLE_EQ(per_pair, 2 * 4.0 * 48);
}

TEST(Llama, BlockElements) {
  ParameterSpec p{"w", {3, 4, 5}};
  EXPECT_EQ(p.block_elements(), 1);
  p.block = BlockKind::kRow;
  EXPECT_EQ(p.block_elements(), 5);
  p.block = BlockKind::kMatrix;
  EXPECT_EQ(p.block_elements(), 60);
}

TEST(Llama, BadSizesNameTheField) {
  auto with = [](auto change) {
    recipe::Model config = free_head();
    change(config);
    return error_of(config);
  };
  EXPECT_EQ(with([](auto& c) { c.hidden_size = 0; }), "model.hidden_size is 0");
  EXPECT_EQ(with([](auto& c) { c.intermediate_size = -1; }), "model.intermediate_size is -1");
  EXPECT_EQ(with([](auto& c) { c.num_hidden_layers = 0; }), "model.num_hidden_layers is 0");
  EXPECT_EQ(with([](auto& c) { c.num_attention_heads = 0; }), "model.num_attention_heads is 0");
  EXPECT_EQ(with([](auto& c) { c.vocab_size = 0; }), "model.vocab_size is 0");
  EXPECT_EQ(with([](auto& c) { c.head_dim = 7; }), "model.head_dim 7 is odd");
  EXPECT_EQ(with([](auto& c) { c.head_dim = -2; }), "model.head_dim is -2");
  EXPECT_EQ(with([](auto& c) { c.head_dim = std::int64_t{1} << 60; }),
            "model.head_dim is 1152921504606846976");
  EXPECT_EQ(with([](auto& c) { c.num_key_value_heads = 4; }),
            "model.num_attention_heads 6 is not a multiple of model.num_key_value_heads 4");
  EXPECT_EQ(with([](auto& c) {
              c.head_dim = 0;
              c.hidden_size = 20;
            }),
            "model.hidden_size 20 is not a multiple of model.num_attention_heads 6");
  EXPECT_EQ(
      with([](auto& c) { c.rope_scaling.factor = 2; }),
      "model.rope_scaling.factor has no effect: the rope_type does not read it; leave it out");
}

TEST(Llama, UnknownFamilyIsRefused) {
  recipe::Model config = free_head();
  config.family = "lama";
  const auto result = make_architecture(config, DType::kFloat32);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "model.family 'lama' is not known");
  EXPECT_EQ(make_architecture(free_head(), DType::kFloat32),
            make_architecture(free_head(), DType::kFloat32));
}

}  // namespace
}  // namespace ptrain::model
