#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/recipe/model.h"

namespace ptrain::model {

// config.json's words for values of ours; the first of several is the one that is written.
inline constexpr std::array<std::pair<std::string_view, recipe::Activation>, 5> kActivationWords{
    {{"silu", recipe::Activation::kSilu},
     {"swish", recipe::Activation::kSilu},
     {"gelu", recipe::Activation::kGelu},
     {"gelu_pytorch_tanh", recipe::Activation::kGeluTanh},
     {"gelu_new", recipe::Activation::kGeluTanh}}};

inline constexpr std::array<std::pair<std::string_view, recipe::RopeType>, 4> kRopeWords{
    {{"default", recipe::RopeType::kDefault},
     {"linear", recipe::RopeType::kLinear},
     {"llama3", recipe::RopeType::kLlama3},
     {"yarn", recipe::RopeType::kYarn}}};

template <class Words>
auto value_of(const Words& words, std::string_view word)
    -> std::optional<typename Words::value_type::second_type> {
  for (const auto& [name, value] : words)
    if (name == word) return value;
  return std::nullopt;
}

template <class Words, class Value>
std::string_view word_of(const Words& words, Value value) {
  for (const auto& [name, meaning] : words)
    if (meaning == value) return name;
  return "";
}

// Parameters of a scaling that are plain numbers, and the types that read them.
struct ScalingField {
  std::string_view name;
  double recipe::RopeScaling::*member;
  bool linear, llama3, yarn;
  constexpr bool is_read_by(recipe::RopeType type) const {
    return (type == recipe::RopeType::kLinear && linear) ||
           (type == recipe::RopeType::kLlama3 && llama3) ||
           (type == recipe::RopeType::kYarn && yarn);
  }
};
inline constexpr std::array<ScalingField, 8> kScalingFields{
    {{"factor", &recipe::RopeScaling::factor, true, true, true},
     {"low_freq_factor", &recipe::RopeScaling::low_freq_factor, false, true, false},
     {"high_freq_factor", &recipe::RopeScaling::high_freq_factor, false, true, false},
     {"attention_factor", &recipe::RopeScaling::attention_factor, false, false, true},
     {"beta_fast", &recipe::RopeScaling::beta_fast, false, false, true},
     {"beta_slow", &recipe::RopeScaling::beta_slow, false, false, true},
     {"mscale", &recipe::RopeScaling::mscale, false, false, true},
     {"mscale_all_dim", &recipe::RopeScaling::mscale_all_dim, false, false, true}}};

}  // namespace ptrain::model
