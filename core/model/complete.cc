#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "core/model/family.h"
#include "core/model/rules.h"
#include "core/recipe/model_limits.h"

namespace ptrain::model {
namespace {

// Of all heads together.
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 22;

Status check_size(std::string_view field, std::int64_t value, std::int64_t limit) {
  if (value >= 1 && value <= limit) return {};
  return fail(ExitCode::kUsage, fmt::format("model.{} is {}", field, value),
              fmt::format("give a whole number from 1 to {}", limit));
}

Status check_sizes(const recipe::Model& model) {
  PTRAIN_CHECK(check_size("hidden_size", model.hidden_size, recipe::kMostHidden));
  PTRAIN_CHECK(check_size("intermediate_size", model.intermediate_size, recipe::kMostIntermediate));
  PTRAIN_CHECK(check_size("num_hidden_layers", model.num_hidden_layers, recipe::kMostLayers));
  PTRAIN_CHECK(check_size("num_attention_heads", model.num_attention_heads, recipe::kMostHeads));
  PTRAIN_CHECK(check_size("num_key_value_heads", model.num_key_value_heads, recipe::kMostHeads));
  return check_size("vocab_size", model.vocab_size, recipe::kMostVocabulary);
}

Status check_heads(const recipe::Model& model) {
  const std::int64_t heads = model.num_attention_heads;
  PTRAIN_CHECK(check_size("head_dim", model.head_dim, kMaxWidth / heads));
  if (model.head_dim % 2 != 0) {
    return fail(ExitCode::kUsage, fmt::format("model.head_dim {} is odd", model.head_dim),
                "rotary positions turn pairs of elements: make it even");
  }
  if (heads % model.num_key_value_heads != 0) {
    return fail(ExitCode::kUsage,
                fmt::format("model.num_attention_heads {} is not a multiple of "
                            "model.num_key_value_heads {}",
                            heads, model.num_key_value_heads),
                "every key-value head serves the same number of attention heads");
  }
  return {};
}

// hidden_size / num_attention_heads, where neither the recipe nor the family gives it.
Status fill_head_dim(recipe::Model& model) {
  if (model.head_dim != 0) return {};
  if (model.hidden_size % model.num_attention_heads != 0) {
    return fail(ExitCode::kUsage,
                fmt::format("model.hidden_size {} is not a multiple of "
                            "model.num_attention_heads {}",
                            model.hidden_size, model.num_attention_heads),
                "change one of them or give model.head_dim");
  }
  model.head_dim = model.hidden_size / model.num_attention_heads;
  return {};
}

// Sizes that follow from others are no choice of the family: a complete model stays complete.
bool follows_from_others(const recipe::Model& model, std::string_view field) {
  if (field == "num_key_value_heads") return model.num_key_value_heads == model.num_attention_heads;
  if (field != "head_dim") return false;
  return model.head_dim * model.num_attention_heads == model.hidden_size ||
         (model.kv_lora_rank > 0 &&
          model.head_dim == model.qk_nope_head_dim + model.qk_rope_head_dim);
}

Status check_fields(const recipe::Model& model) {
  std::vector<std::string> unused;
  for (const std::string_view field : unused_fields(model))
    unused.push_back(fmt::format("model.{}", field));
  if (unused.empty()) return {};
  return fail(ExitCode::kUsage,
              fmt::format("{} has no effect in family {}", fmt::join(unused, ", "), model.family),
              "leave it out or choose another model.family");
}

}  // namespace

std::vector<std::string_view> unused_fields(const recipe::Model& model) {
  std::vector<std::string_view> unused;
  const auto family = find_family(model.family);
  if (!family) return unused;
  for (const OptionalField& field : optional_fields())
    if (field.is_set(model) && !(*family)->uses(field.name) &&
        !follows_from_others(model, field.name))
      unused.push_back(field.name);
  return unused;
}

recipe::Model with_defaults(recipe::Model model) {
  if (model.num_key_value_heads == 0) model.num_key_value_heads = model.num_attention_heads;
  if (const auto family = find_family(model.family)) (*family)->complete(model);
  return model;
}

std::int64_t learned_positions(const recipe::Model& model) {
  const auto family = find_family(model.family);
  return family ? (*family)->decoder(with_defaults(model)).num_positions : 0;
}

Result<recipe::Model> complete(recipe::Model model) {
  PTRAIN_CHECK(find_family(model.family));
  PTRAIN_CHECK(check_fields(model));
  model = with_defaults(std::move(model));
  PTRAIN_CHECK(check_sizes(model));
  PTRAIN_CHECK(fill_head_dim(model));
  PTRAIN_CHECK(check_heads(model));
  PTRAIN_CHECK(status_of(breaches_of(model)));
  return model;
}

}  // namespace ptrain::model
