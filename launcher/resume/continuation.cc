#include "launcher/resume/continuation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/dcp/import.h"
#include "core/model/optimizer.h"
#include "core/recipe/json.h"

namespace ptrain::resume {

namespace {

constexpr const char* kRecipe = "ptrain.recipe";

// A whole number that is not negative, however it is stored: torch keeps steps as floats.
Result<std::int64_t> count_at(const StoredCheckpoint& checkpoint, const std::string& key) {
  PTRAIN_TRY(const nlohmann::json value, checkpoint.value(key));
  const double number = value.is_number() ? value.get<double>() : -1;
  if (number < 0 || number > 1e15 || number != std::floor(number))
    return fail(ExitCode::kUnusable,
                fmt::format("'{}' in {} is {}, which is no number of steps or tokens", key,
                            checkpoint.folder(), value.dump()),
                "use an undamaged checkpoint");
  return static_cast<std::int64_t>(number);
}

// The recipe that the checkpoint was trained with; none where ptrain did not write it.
Result<std::optional<recipe::Recipe>> recipe_of(const StoredCheckpoint& checkpoint) {
  if (!checkpoint.has(kRecipe)) return std::optional<recipe::Recipe>();
  PTRAIN_TRY(const nlohmann::json text, checkpoint.value(kRecipe));
  const auto json = text.is_string()
                        ? nlohmann::json::parse(text.get<std::string>(), nullptr, false)
                        : nlohmann::json();
  auto recipe = recipe::from_json(json);
  if (json.is_object() && recipe) return std::optional(std::move(*recipe));
  return fail(ExitCode::kUnusable,
              fmt::format("'{}' in {} is no recipe{}", kRecipe, checkpoint.folder(),
                          recipe ? "" : ": " + recipe.error().message),
              "use an undamaged checkpoint, with the build of ptrain that wrote it or a newer one");
}

Status take_steps(const StoredCheckpoint& checkpoint, const dcp::Import& import,
                  Continuation& result) {
  const auto key = dcp::step_key(checkpoint.metadata(), import);
  if (!import.has_moments)
    result.fresh.push_back("optimizer state, and with it the step: from 0");
  else if (!key)
    result.fresh.push_back("step, and with it the optimizer state: from 0");
  if (!import.has_moments || !key) return {};
  result.origin.optimizer = true;
  PTRAIN_TRY(result.origin.step, count_at(checkpoint, *key));
  for (const char* tokens : {"train.tokens", "train_state.ntokens_seen"})
    if (checkpoint.has(tokens)) {
      PTRAIN_TRY(result.origin.tokens, count_at(checkpoint, tokens));
      return {};
    }
  result.fresh.push_back("count of trained tokens: from 0");
  return {};
}

// A place in the data means the same only in the same order of the same documents.
void take_data(const StoredCheckpoint& checkpoint, Continuation& result) {
  bool there = result.origin.optimizer;
  for (const char* key :
       {"train.step", "train.tokens", "data.position", "data.train_hash", "data.validation_hash"})
    there = there && checkpoint.has(key);
  const bool same = std::none_of(
      result.differences.begin(), result.differences.end(), [](const Difference& difference) {
        return difference.field == "seed" || difference.field.starts_with("data.");
      });
  result.origin.data = there && same;
  if (!there)
    result.fresh.push_back("place in the data: from the first document");
  else if (!same)
    result.fresh.push_back("place in the data, since data or seed differ: from the first document");
}

void take_notes(const dcp::Import& import, bool has_recipe, Continuation& result) {
  result.notes.push_back("the checkpoint has " + import.naming);
  if (!has_recipe)
    result.notes.push_back(
        "it does not tell rms_norm_eps, rope_theta and settings of the optimizer: those of the "
        "recipe are used");
  if (!import.unread.empty())
    result.notes.push_back(fmt::format("{} of its tensors are not used, such as '{}'",
                                       import.unread.size(), import.unread.front()));
}

}  // namespace

Result<Continuation> continue_from(const StoredCheckpoint& checkpoint,
                                   const recipe::Recipe& recipe) {
  Continuation result;
  result.origin.checkpoint = checkpoint.folder();
  PTRAIN_TRY(const auto before, recipe_of(checkpoint));
  if (before) result.differences = differences(*before, recipe);
  PTRAIN_CHECK(permit(result.differences, true));  // another model would only miss its tensors
  PTRAIN_TRY(const auto architecture, model::make_architecture(recipe));
  auto import = dcp::find_parameters(checkpoint.metadata(), architecture);
  if (!import) {
    import.error().message = checkpoint.folder() + ": " + import.error().message;
    return tl::unexpected(std::move(import).error());
  }
  PTRAIN_CHECK(take_steps(checkpoint, *import, result));
  take_data(checkpoint, result);
  take_notes(*import, before.has_value(), result);
  return result;
}

Status permit(const Continuation& continuation, const recipe::Recipe& recipe, bool allow_changes) {
  PTRAIN_CHECK(permit(continuation.differences, allow_changes));
  std::int64_t steps = 0;
  for (const auto& shape : recipe.shapes) steps += shape.steps;
  if (continuation.origin.step >= steps)
    return fail(ExitCode::kUsage,
                fmt::format("nothing is left to train: the checkpoint is at step {}, and the "
                            "recipe has {} steps",
                            continuation.origin.step, steps),
                "raise shapes.N.steps: steps count from the start of the first run");
  if (continuation.fresh.empty() || allow_changes) return {};
  std::string list;
  for (const auto& one : continuation.fresh) list += "\n  " + one;
  return fail(ExitCode::kUsage, "what the checkpoint lacks would start anew:" + list,
              "--allow-changes starts so");
}

}  // namespace ptrain::resume
