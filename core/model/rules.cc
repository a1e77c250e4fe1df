#include "core/model/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/model/layer_types.h"
#include "core/model/rotary.h"

namespace ptrain::model {
namespace {

using recipe::Breach;
using Breaches = std::vector<Breach>;

void check_words(const recipe::Model& model, Breaches& out) {
  for (const std::string& word : words_of(model.layer_types)) {
    if (word == kFullAttention || word == kSlidingAttention) continue;
    const std::string what = word.empty() ? "has an empty entry" : fmt::format("has '{}'", word);
    out.push_back({{"model.layer_types"},
                   fmt::format("{}; allowed: {}, {}, separated by commas", what, kFullAttention,
                               kSlidingAttention)});
    return;
  }
}

void check_windows(const recipe::Model& model, Breaches& out) {
  const bool slides = model.layer_types.find(kSlidingAttention) != std::string::npos;
  if (slides && model.sliding_window == 0)
    out.push_back({{"model.layer_types", "model.sliding_window"},
                   "has sliding_attention, but there is no window; give model.sliding_window"});
  if (model.max_window_layers == 0) return;
  if (model.sliding_window == 0)
    out.push_back({{"model.max_window_layers", "model.sliding_window"},
                   "has no effect without a window; give model.sliding_window or leave it out"});
  if (!model.layer_types.empty())
    out.push_back({{"model.max_window_layers", "model.layer_types"},
                   "contradicts model.layer_types; keep one of them"});
}

// Far below any score, and still a number in fp32.
constexpr double kLeastSoftcap = 1e-3;

void check_softcap(const char* path, double value, Breaches& out) {
  if (value == 0 || value >= kLeastSoftcap) return;
  out.push_back(
      {{path}, fmt::format("is {}; give 0 for none, or {} and more", value, kLeastSoftcap)});
}

// Below the smallest normal number of fp32: where it is added to a square that is zero, a division
// by zero follows.
void check_eps(const char* path, double value, Breaches& out) {
  if (value == 0 || value >= std::numeric_limits<float>::min()) return;
  out.push_back(
      {{path},
       fmt::format("is {}, which fp32 cannot tell from 0, so that a row of zeros would be "
                   "divided by 0; give 1e-12 or more",
                   value)});
}

void check_scores(const recipe::Model& model, Breaches& out) {
  constexpr double kLeast = 1e-6;
  const double scalar = model.query_pre_attn_scalar;
  if (scalar == 0 || scalar >= kLeast) return;
  out.push_back({{"model.query_pre_attn_scalar"},
                 fmt::format("is {}; scores are divided by its root and would leave the range of "
                             "fp32: give {} or more",
                             scalar, kLeast)});
}

}  // namespace

Status status_of(const Breaches& breaches) {
  if (breaches.empty()) return {};
  std::string text;
  for (const Breach& breach : breaches)
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", breach.paths.front(), breach.message);
  return fail(ExitCode::kUsage, text, "docs/recipe.md describes the fields of model");
}

Breaches breaches_of(const recipe::Model& model) {
  Breaches out;
  check_words(model, out);
  check_windows(model, out);
  check_softcap("model.attn_logit_softcapping", model.attn_logit_softcapping, out);
  check_softcap("model.final_logit_softcapping", model.final_logit_softcapping, out);
  check_eps("model.rms_norm_eps", model.rms_norm_eps, out);
  check_eps("model.layer_norm_eps", model.layer_norm_eps, out);
  check_scores(model, out);
  for (Breaches more : {rope_breaches(model.rope_scaling, model.rope_theta), expert_breaches(model),
                        latent_breaches(model)})
    std::ranges::move(more, std::back_inserter(out));
  return out;
}

}  // namespace ptrain::model
