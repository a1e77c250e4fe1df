#include "launcher/recipe/resolve.h"

#include "core/base/divide.h"
#include "core/model/family.h"

namespace ptrain::recipe {
std::int64_t steps_of(const Shape& shape) {
  if (shape.steps > 0 || shape.global_batch_tokens == 0) return shape.steps;
  return divide_up(shape.tokens, shape.global_batch_tokens);
}

std::int64_t padded_vocabulary(std::int64_t num_tokens) {
  constexpr std::int64_t kMultiple = 64;
  return round_up(num_tokens, kMultiple);
}

Recipe resolve(Recipe recipe) {
  Model& model = recipe.model;
  if (model.vocab_size == 0 && recipe.data.tokenizer == "byte")
    model.vocab_size = padded_vocabulary(kByteTokens);
  if (auto complete = model::complete(model)) model = *std::move(complete);
  for (Shape& shape : recipe.shapes) {
    shape.steps = steps_of(shape);
    shape.tokens = shape.steps * shape.global_batch_tokens;
  }
  return recipe;
}

}  // namespace ptrain::recipe
