#include "launcher/recipe/resolve.h"

#include "core/model/family.h"

namespace ptrain::recipe {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace

std::int64_t steps_of(const Shape& shape) {
  if (shape.steps > 0 || shape.global_batch_tokens == 0) return shape.steps;
  return divide_up(shape.tokens, shape.global_batch_tokens);
}

Recipe resolve(Recipe recipe) {
  constexpr std::int64_t kVocabularyMultiple = 64;  // matmuls are quicker on whole cache lines
  Model& model = recipe.model;
  if (model.vocab_size == 0) {
    model.vocab_size = divide_up(kByteTokens, kVocabularyMultiple) * kVocabularyMultiple;
  }
  if (auto complete = model::complete(model)) model = *std::move(complete);
  for (Shape& shape : recipe.shapes) {
    shape.steps = steps_of(shape);
    shape.tokens = shape.steps * shape.global_batch_tokens;
  }
  return recipe;
}

}  // namespace ptrain::recipe
