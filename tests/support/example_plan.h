#pragma once

#include <limits>

#include "core/run/plan.h"

namespace ptrain::support {

// Every kind of field set: a model that compiles, two ranks, an infinite number.
inline run::Plan example_plan() {
  run::Plan plan;
  plan.build = "0.1-ab";
  plan.recipe_hash = "h";
  plan.recipe.name = "tiny";
  plan.recipe.model.hidden_size = 64;
  plan.recipe.model.intermediate_size = 128;
  plan.recipe.model.num_hidden_layers = 2;
  plan.recipe.model.num_attention_heads = 4;
  recipe::Shape wanted;
  wanted.name = "short";
  wanted.sequence = 32;
  wanted.global_batch_tokens = 64;
  wanted.steps = 10;
  plan.recipe.shapes = {wanted};
  plan.recipe_folder = "/recipes";
  plan.cluster = "here";
  plan.peak_flops_per_rank = 1e11;
  plan.ranks = {{0, "a", 0, -1}, {1, "a", 1, -1}};
  run::ShapePlan shape;
  shape.name = "short";
  shape.layout.dp = 2;
  shape.layout.recompute = recipe::Recompute::kFull;
  shape.layout.offload = recipe::Offload::kOptimizer;
  shape.threads = 3;
  shape.predicted.step_s = 0.25;
  shape.predicted.high_s = std::numeric_limits<double>::infinity();
  program::BytesByClass bytes{};
  bytes[2].value = 12345678901;
  shape.predicted.classes = {{2, "abc", bytes}};
  shape.rejected = {{"rows do not divide", 3, "dp4"}};
  plan.shapes = {shape};
  return plan;
}

}  // namespace ptrain::support
