#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_model = [](auto& recipe, std::size_t) -> auto& { return recipe.model; };

void add_model_sizes(std::vector<Field>& all) {
  append(all,
         row({.path = "model.hidden_size",
              .unit = "elements",
              .required = true,
              .range = {1, 1 << 20},
              .description = "Width of the residual stream."},
             in_model, &Model::hidden_size),
         row({.path = "model.intermediate_size",
              .unit = "elements",
              .required = true,
              .range = {1, 1 << 22},
              .description = "Width inside the feed-forward part."},
             in_model, &Model::intermediate_size),
         row({.path = "model.num_hidden_layers",
              .unit = "layers",
              .required = true,
              .range = {1, 4096},
              .description = "Number of blocks."},
             in_model, &Model::num_hidden_layers),
         row({.path = "model.num_attention_heads",
              .unit = "heads",
              .required = true,
              .range = {1, 65536},
              .description = "Number of query heads."},
             in_model, &Model::num_attention_heads),
         row({.path = "model.num_key_value_heads",
              .unit = "heads",
              .range = {0, 65536},
              .description = "Number of key and value heads; 0: as many as query heads."},
             in_model, &Model::num_key_value_heads),
         row({.path = "model.head_dim",
              .unit = "elements",
              .range = {0, 65536},
              .description = "Size of a head, even; 0: hidden_size / num_attention_heads."},
             in_model, &Model::head_dim),
         row({.path = "model.vocab_size",
              .unit = "tokens",
              .range = {0, 1 << 24},
              .description = "Rows of the embedding; 0: what the tokenizer needs, padded to a "
                             "multiple of 64."},
             in_model, &Model::vocab_size));
}

}  // namespace

void add_model(std::vector<Field>& all) {
  append(all,
         row({.path = "model.file",
              .description = "YAML file with the fields of `model`, beside the recipe or in "
                             "configs/models; fields given here win over the file's."},
             in_model, &Model::file),
         row({.path = "model.family",
              .choices = {"llama"},
              .unavailable = {"qwen3", "mixtral", "gpt2"},
              .description = "Architecture."},
             in_model, &Model::family));
  add_model_sizes(all);
  append(all,
         row({.path = "model.rms_norm_eps",
              .range = {0, 1, true},
              .description = "Added to the mean square in RMSNorm."},
             in_model, &Model::rms_norm_eps),
         row({.path = "model.rope_theta",
              .range = {1, 1e12},
              .description = "Base of the rotary angles."},
             in_model, &Model::rope_theta),
         row({.path = "model.initializer_range",
              .range = {0, 10, true},
              .description = "Standard deviation of the initial weights."},
             in_model, &Model::initializer_range),
         row({.path = "model.tie_word_embeddings",
              .description = "Whether the head uses the embedding's weights."},
             in_model, &Model::tie_word_embeddings));
}

}  // namespace ptrain::recipe::table
