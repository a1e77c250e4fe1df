#include "core/model/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ptrain::model {
namespace {

using recipe::RopeScaling;
using recipe::RopeType;
constexpr double kTurn = 2 * std::numbers::pi;

// Slow frequencies (whose wave is longer than the original context by low_freq_factor) are divided,
// fast ones kept, those between blended.
double llama3(double frequency, const RopeScaling& scaling) {
  const auto context = static_cast<double>(scaling.original_max_position_embeddings);
  const double wave = kTurn / frequency;
  if (wave < context / scaling.high_freq_factor) return frequency;
  if (wave > context / scaling.low_freq_factor) return frequency / scaling.factor;
  const double kept = (context / wave - scaling.low_freq_factor) /
                      (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - kept) * frequency / scaling.factor + kept * frequency;
}

// The pair that turns so many times over the original context (a real number).
double pair_of_turns(double turns, const RotarySpec& rotary, std::int64_t head_dim) {
  const auto context = static_cast<double>(rotary.scaling.original_max_position_embeddings);
  return static_cast<double>(head_dim) * std::log(context / (turns * kTurn)) /
         (2 * std::log(rotary.theta));
}

double fast(const RopeScaling& scaling) { return scaling.beta_fast > 0 ? scaling.beta_fast : 32; }
double slow(const RopeScaling& scaling) { return scaling.beta_slow > 0 ? scaling.beta_slow : 1; }

// Pairs before the ramp keep their frequency, pairs after it are divided.
std::vector<double> yarn(std::vector<double> frequencies, const RotarySpec& rotary,
                         std::int64_t head_dim) {
  const RopeScaling& scaling = rotary.scaling;
  double low = pair_of_turns(fast(scaling), rotary, head_dim);
  double high = pair_of_turns(slow(scaling), rotary, head_dim);
  if (scaling.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(head_dim - 1));
  if (low == high) high += 0.001;  // as transformers: no division by zero
  for (std::size_t j = 0; j < frequencies.size(); ++j) {
    const double divided = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
    frequencies[j] = frequencies[j] / scaling.factor * divided + frequencies[j] * (1 - divided);
  }
  return frequencies;
}

double yarn_scale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

struct Parameter {
  std::string_view name;
  bool is_set;
  bool wanted;    // the type cannot do without it
  bool accepted;  // the type reads it
};

std::vector<Parameter> parameters_of(const RopeScaling& s) {
  const bool linear = s.rope_type == RopeType::kLinear, llama3 = s.rope_type == RopeType::kLlama3;
  const bool yarn = s.rope_type == RopeType::kYarn;
  const bool scaled = linear || llama3 || yarn;
  return {{"factor", s.factor != 0, scaled, scaled},
          {"original_max_position_embeddings", s.original_max_position_embeddings != 0,
           llama3 || yarn, llama3 || yarn},
          {"low_freq_factor", s.low_freq_factor != 0, llama3, llama3},
          {"high_freq_factor", s.high_freq_factor != 0, llama3, llama3},
          {"attention_factor", s.attention_factor != 0, false, yarn},
          {"beta_fast", s.beta_fast != 0, false, yarn},
          {"beta_slow", s.beta_slow != 0, false, yarn},
          {"mscale", s.mscale != 0, s.mscale_all_dim != 0, yarn},
          {"mscale_all_dim", s.mscale_all_dim != 0, s.mscale != 0, yarn},
          {"truncate", !s.truncate, false, yarn}};
}

}  // namespace

std::vector<double> rotary_frequencies(const RotarySpec& rotary, std::int64_t head_dim) {
  std::vector<double> frequencies;
  for (std::int64_t j = 0; j < head_dim / 2; ++j)
    frequencies.push_back(
        std::pow(rotary.theta, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim)));
  switch (rotary.scaling.rope_type) {
    case RopeType::kDefault:
      break;
    case RopeType::kLinear:
      for (double& frequency : frequencies) frequency /= rotary.scaling.factor;
      break;
    case RopeType::kLlama3:
      for (double& frequency : frequencies) frequency = llama3(frequency, rotary.scaling);
      break;
    case RopeType::kYarn:
      return yarn(std::move(frequencies), rotary, head_dim);
  }
  return frequencies;
}

double rotary_factor(const RotarySpec& rotary) {
  const RopeScaling& scaling = rotary.scaling;
  if (scaling.rope_type != RopeType::kYarn) return 1;
  if (scaling.attention_factor > 0) return scaling.attention_factor;
  if (scaling.mscale == 0) return yarn_scale(scaling.factor, 1);
  return yarn_scale(scaling.factor, scaling.mscale) /
         yarn_scale(scaling.factor, scaling.mscale_all_dim);
}

double rotary_score_factor(const RotarySpec& rotary) {
  const RopeScaling& scaling = rotary.scaling;
  if (scaling.rope_type != RopeType::kYarn || scaling.mscale_all_dim == 0) return 1;
  const double scale = yarn_scale(scaling.factor, scaling.mscale_all_dim);
  return scale * scale;
}

std::vector<recipe::Breach> rope_breaches(const RopeScaling& scaling, double theta) {
  std::vector<recipe::Breach> out;
  const auto of = [](std::string_view field) {
    return fmt::format("model.rope_scaling.{}", field);
  };
  const auto refuse = [&](std::string_view field, std::string message) {
    out.push_back({{of(field), "model.rope_scaling.rope_type"}, std::move(message)});
  };
  for (const Parameter& parameter : parameters_of(scaling)) {
    if (parameter.wanted && !parameter.is_set)
      refuse(parameter.name, "is missing: the rope_type cannot do without; give it");
    if (!parameter.accepted && parameter.is_set)
      refuse(parameter.name, "has no effect: the rope_type does not read it; leave it out");
  }
  const bool yarn = scaling.rope_type == RopeType::kYarn;
  const bool llama3 = scaling.rope_type == RopeType::kLlama3;
  if (scaling.rope_type != RopeType::kDefault && scaling.factor > 0 && scaling.factor < 1)
    refuse("factor",
           fmt::format("is {}; it stretches the context: give 1 or more", scaling.factor));
  if (yarn && fast(scaling) <= slow(scaling))
    refuse("beta_fast", "is not above beta_slow; 32 and 1 are usual");
  if (llama3 && scaling.high_freq_factor > 0 && scaling.low_freq_factor > 0 &&
      scaling.high_freq_factor <= scaling.low_freq_factor)
    refuse("high_freq_factor", "is not above low_freq_factor; in Llama 3 they are 4 and 1");
  if (yarn && theta != 0 && theta <= 1)
    out.push_back({{"model.rope_theta", "model.rope_scaling.rope_type"},
                   fmt::format("is {}; yarn needs one above 1: 10000 is usual", theta)});
  return out;
}

}  // namespace ptrain::model
