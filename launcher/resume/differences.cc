#include "launcher/resume/differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/recipe/json.h"

namespace ptrain::resume {

namespace {

using Fields = std::map<std::string, std::string>;

// A layout by its fields, so that each is compared with its like: `auto` leaves all of them open,
// and a shape without its own has that of the recipe, where the other's shape has one.
recipe::Recipe with_layouts(recipe::Recipe recipe, const recipe::Recipe& other) {
  recipe.parallel.automatic = false;
  for (std::size_t i = 0; i < recipe.shapes.size(); ++i) {
    auto& own = recipe.shapes[i].parallel;
    if (!own && i < other.shapes.size() && other.shapes[i].parallel) own = recipe.parallel;
    if (own) own->automatic = false;
  }
  return recipe;
}

// /shapes/0/steps -> shapes.0.steps
Fields fields_of(const recipe::Recipe& recipe) {
  Fields fields;
  const nlohmann::json flat = recipe::to_json(recipe).flatten();
  for (const auto& [pointer, value] : flat.items()) {
    if (value.is_null()) continue;  // a list without entries
    std::string path = pointer.substr(std::min<std::size_t>(1, pointer.size()));
    std::replace(path.begin(), path.end(), '/', '.');
    fields[path] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return fields;
}

bool is_of(std::string_view field, std::string_view section) {
  return field == section || (field.starts_with(section) && field[section.size()] == '.');
}

// `shapes.N.` followed by `name` or a part of it.
bool is_of_shape(std::string_view field, std::string_view name) {
  if (!is_of(field, "shapes")) return false;
  const std::size_t dot = field.find('.', std::string_view("shapes.").size());
  return dot != std::string_view::npos && is_of(field.substr(dot + 1), name);
}

// Where model and tokenizer came from says nothing beside them; tokens follow from steps.
bool is_derived(std::string_view field) {
  return field == "model.file" || field == "model.hf" || field == "data.tokenizer_file" ||
         is_of_shape(field, "tokens");
}

Change change_of(std::string_view field) {
  // The one choice of a layout that changes numbers as precision does.
  if (is_of(field, "parallel.stage_dtype") || is_of_shape(field, "parallel.stage_dtype"))
    return Change::kAllowed;
  for (const char* section : {"parallel", "cluster", "log", "name"})
    if (is_of(field, section)) return Change::kFree;
  if (is_of_shape(field, "parallel")) return Change::kFree;
  for (const char* section : {"model", "data.tokenizer", "data.tokenizer_hash", "optimizer.kind"})
    if (is_of(field, section)) return Change::kForbidden;
  return Change::kAllowed;
}

std::string value_or(const Fields& fields, const std::string& field) {
  const auto found = fields.find(field);
  return found == fields.end() ? "" : found->second;
}

std::string lines_of(std::span<const Difference> differences, Change change) {
  std::string text;
  for (const auto& difference : differences)
    if (difference.change == change) text += "\n  " + to_string(difference);
  return text;
}

}  // namespace

std::vector<Difference> differences(const recipe::Recipe& before, const recipe::Recipe& now) {
  const Fields old_fields = fields_of(with_layouts(before, now));
  const Fields new_fields = fields_of(with_layouts(now, before));
  Fields all = new_fields;
  all.insert(old_fields.begin(), old_fields.end());
  std::vector<Difference> result;
  for (const auto& [field, value] : all) {
    Difference one{field, value_or(old_fields, field), value_or(new_fields, field),
                   change_of(field)};
    if (one.before != one.now && !is_derived(field)) result.push_back(std::move(one));
  }
  return result;
}

std::string to_string(const Difference& difference) {
  const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
  return fmt::format("{}: {} -> {}", difference.field, shown(difference.before),
                     shown(difference.now));
}

Status permit(std::span<const Difference> differences, bool allow_changes) {
  const std::string forbidden = lines_of(differences, Change::kForbidden);
  if (!forbidden.empty())
    return fail(
        ExitCode::kUsage,
        "model, tokenizer and kind of optimizer may not change in a resumed run:" + forbidden,
        "start a new run with `ptrain run`, or give the old values");
  const std::string allowed = lines_of(differences, Change::kAllowed);
  if (allowed.empty() || allow_changes) return {};
  return fail(ExitCode::kUsage, "the recipe is not the one that was trained with:" + allowed,
              "--allow-changes goes on with the new values");
}

}  // namespace ptrain::resume
