#pragma once

#include "core/recipe/recipe.h"

namespace ptrain::support {

// What a plan is made of in no time: two layers of 64, one shape with 12 rows of 32 tokens a step.
inline recipe::Recipe small_recipe() {
  recipe::Recipe recipe;
  recipe.name = "small";
  recipe.model.hidden_size = 64;
  recipe.model.intermediate_size = 128;
  recipe.model.num_hidden_layers = 2;
  recipe.model.num_attention_heads = 4;
  recipe.model.vocab_size = 320;
  recipe::Shape shape;
  shape.name = "short";
  shape.sequence = 32;
  shape.global_batch_tokens = 32 * 12;
  shape.steps = 1;
  recipe.shapes = {shape};
  return recipe;
}

}  // namespace ptrain::support
