#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/recipe/field.h"

// What the rows of the table are made with. An `owner` turns a Recipe, const or not, and the entry
// of a list into the struct that holds a field.
namespace ptrain::recipe::table {

inline constexpr double kMostSteps = 1e9;
inline constexpr double kMostTokens = 1e15;

template <class Member>
using ValueOf = std::conditional_t<std::is_integral_v<Member> && !std::is_same_v<Member, bool>,
                                   std::int64_t, Member>;

template <class Member>
constexpr FieldType type_of() {
  if constexpr (std::is_same_v<Member, bool>) return FieldType::kBoolean;
  if constexpr (std::is_same_v<Member, double>) return FieldType::kNumber;
  if constexpr (std::is_same_v<Member, std::string>) return FieldType::kText;
  return FieldType::kInteger;
}

// A row whose value is the member of the struct that `owner` finds; the member gives its type.
template <class Owner, class Struct, class Member>
Field row(Field field, Owner owner, Member Struct::*member) {
  using V = ValueOf<Member>;
  field.type = field.choices.empty() ? type_of<Member>() : FieldType::kChoice;
  field.set = [owner, member](Recipe& recipe, std::size_t i, const Value& value) {
    owner(recipe, i).*member = static_cast<Member>(std::get<V>(value));
  };
  field.get = [owner, member](const Recipe& recipe, std::size_t i) {
    return Value(static_cast<V>(owner(recipe, i).*member));
  };
  return field;
}

// A row whose words stand for the values of an enumeration, or of an optional one.
template <class Owner, class Struct, class Member>
Field choice(Field field, Owner owner, Member Struct::*member,
             std::vector<std::pair<std::string, Member>> words) {
  field.type = FieldType::kChoice;
  for (const auto& [word, value] : words) field.choices.push_back(word);
  field.set = [owner, member, words](Recipe& recipe, std::size_t i, const Value& value) {
    for (const auto& [word, meaning] : words) {
      if (word == std::get<std::string>(value)) owner(recipe, i).*member = meaning;
    }
  };
  field.get = [owner, member, words](const Recipe& recipe, std::size_t i) {
    for (const auto& [word, meaning] : words) {
      if (meaning == owner(recipe, i).*member) return Value(word);
    }
    return Value(std::string());  // a value without a word, such as bf16 of a later version
  };
  return field;
}

// A row whose number may be left out by a word.
template <class Owner, class Struct>
Field optional_row(Field field, Owner owner, std::optional<int> Struct::*member) {
  field.type = FieldType::kInteger;
  field.set = [owner, member](Recipe& recipe, std::size_t i, const Value& value) {
    const auto* number = std::get_if<std::int64_t>(&value);
    if (number == nullptr) {
      owner(recipe, i).*member = std::nullopt;
    } else {
      owner(recipe, i).*member = static_cast<int>(*number);
    }
  };
  field.get = [owner, member, word = field.absent_word](const Recipe& recipe, std::size_t i) {
    const std::optional<int> number = owner(recipe, i).*member;
    return number ? Value(std::int64_t{*number}) : Value(word);
  };
  return field;
}

// A row for each entry of a list of texts; `lists.cc` holds the list itself.
template <class Owner, class Struct>
Field text_list(Field field, Owner owner, std::vector<std::string> Struct::*member) {
  field.type = FieldType::kText;
  field.set = [owner, member](Recipe& recipe, std::size_t i, const Value& value) {
    (owner(recipe, i).*member)[i] = std::get<std::string>(value);
  };
  field.get = [owner, member](const Recipe& recipe, std::size_t i) {
    return Value((owner(recipe, i).*member)[i]);
  };
  return field;
}

template <class... Parts>
void append(std::vector<Field>& all, Parts... rows) {
  (all.push_back(std::move(rows)), ...);
}

// The rows of each section, in the order of docs/recipe.md.
void add_top(std::vector<Field>& all);
void add_model(std::vector<Field>& all);
void add_experts(std::vector<Field>& all);  // among those of the model
void add_data(std::vector<Field>& all);
void add_shapes(std::vector<Field>& all);
void add_shape_parallel(std::vector<Field>& all);
void add_optimizer(std::vector<Field>& all);
void add_learning_rate(std::vector<Field>& all);
void add_parallel(std::vector<Field>& all);
void add_upkeep(std::vector<Field>& all);
void add_machine(std::vector<Field>& all);
void add_slurm(std::vector<Field>& all);
void add_failure_and_log(std::vector<Field>& all);

}  // namespace ptrain::recipe::table
