#include "launcher/recipe/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/model/family.h"
#include "core/model/rules.h"
#include "core/recipe/field.h"
#include "launcher/recipe/check_pipeline.h"
#include "launcher/recipe/resolve.h"

namespace ptrain::recipe {
namespace {

using Breaches = std::vector<Breach>;

// Fit for a folder, a file name and a command line as it is.
bool is_safe_name(const std::string& name) {
  constexpr std::size_t kLongest = 64;
  const auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto is_safe = [&](char c) {
    return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kLongest && is_alphanumeric(name[0]) &&
         std::all_of(name.begin(), name.end(), is_safe);
}

void check_name(const std::string& path, const std::string& name, Breaches& out) {
  if (is_safe_name(name)) return;
  out.push_back({{path},
                 "not fit for a folder; allowed: up to 64 letters, digits, '.', '_', '-', "
                 "beginning with a letter or digit"});
}

std::string shape_path(std::size_t i, std::string_view name) {
  return fmt::format("shapes.{}.{}", i, name);
}

void check_family(const Recipe& recipe, Breaches& out) {
  for (const std::string_view field : model::unused_fields(recipe.model))
    out.push_back({{fmt::format("model.{}", field), "model.family"},
                   fmt::format("has no effect in family {}; leave it out", recipe.model.family)});
  const std::int64_t most = model::learned_positions(recipe.model);
  for (std::size_t i = 0; most > 0 && i < recipe.shapes.size(); ++i)
    if (recipe.shapes[i].sequence > most)
      out.push_back({{shape_path(i, "sequence"), "model.max_position_embeddings"},
                     fmt::format("{} tokens, but the model has learned positions for {}: {}",
                                 recipe.shapes[i].sequence, most,
                                 recipe.model.hf.empty() ? "raise model.max_position_embeddings"
                                                         : "take shorter sequences")});
}

void check_model(const Model& given, Breaches& out) {
  for (Breach& breach : model::breaches_of(model::with_defaults(given)))
    out.push_back(std::move(breach));
}

void check_heads(const Model& given, Breaches& out) {
  const Model model = model::with_defaults(given);
  const std::int64_t heads = model.num_attention_heads;
  const std::int64_t kv_heads = model.num_key_value_heads;
  if (heads == 0) return;
  if (kv_heads > 0 && heads % kv_heads != 0) {
    out.push_back({{"model.num_key_value_heads", "model.num_attention_heads"},
                   fmt::format("{} does not divide num_attention_heads ({})", kv_heads, heads)});
  }
  if (model.head_dim == 0 && model.hidden_size % heads != 0) {
    out.push_back({{"model.num_attention_heads", "model.hidden_size", "model.head_dim"},
                   fmt::format("{} does not divide hidden_size ({}); change one, or give head_dim",
                               heads, model.hidden_size)});
    return;
  }
  const std::int64_t head_dim = model.head_dim > 0 ? model.head_dim : model.hidden_size / heads;
  if (head_dim % 2 != 0) {
    out.push_back(
        {{model.head_dim > 0 ? "model.head_dim" : "model.num_attention_heads", "model.hidden_size",
          "model.head_dim"},
         fmt::format("the size of a head is {}; rotary positions need an even one", head_dim)});
  }
}

void check_vocabulary(const Recipe& recipe, Breaches& out) {
  const Model& model = recipe.model;
  if (recipe.data.tokenizer == "none") {
    if (model.vocab_size == 0)
      out.push_back({{"model.vocab_size", "data.tokenizer"},
                     "is needed without a tokenizer: how many tokens there are"});
    if (recipe.validation.sample_tokens > 0)
      out.push_back({{"validation.sample_tokens", "data.tokenizer"},
                     "cannot be shown as text without a tokenizer"});
    return;
  }
  const bool has_room = model.vocab_size == 0 || model.vocab_size >= kByteTokens;
  if (recipe.data.tokenizer != "byte" || has_room) return;
  if (!model.hf.empty()) {
    out.push_back({{"model.hf", "data.tokenizer"},
                   fmt::format("the model has a vocabulary of {}, but the byte tokenizer has {} "
                               "tokens: some would lie beyond it",
                               model.vocab_size, kByteTokens)});
    return;
  }
  out.push_back({{"model.vocab_size", "data.tokenizer"},
                 fmt::format("{} is too small: the byte tokenizer has {} tokens; 0 takes what is "
                             "needed",
                             model.vocab_size, kByteTokens)});
}

void check_tokenizer(const Data& data, Breaches& out) {
  const bool takes_file = data.tokenizer == "sentencepiece";
  if (takes_file && data.tokenizer_file.empty())
    out.push_back({{"data.tokenizer_file", "data.tokenizer"},
                   "is needed by tokenizer: sentencepiece; give its .model file"});
  for (const auto& [path, value] : {std::pair{"data.tokenizer_file", &data.tokenizer_file},
                                    {"data.tokenizer_hash", &data.tokenizer_hash}})
    if (!takes_file && !value->empty())
      out.push_back({{path, "data.tokenizer"},
                     fmt::format("tokenizer: {} has no file; leave it out, or give tokenizer: "
                                 "sentencepiece",
                                 data.tokenizer)});
}

void check_data(const Recipe& recipe, Breaches& out) {
  const Data& data = recipe.data;
  const Validation& validation = recipe.validation;
  check_tokenizer(data, out);
  if (data.train.empty()) {
    out.push_back({{"data.train"}, "needs at least one entry, such as - path: texts/*.txt"});
  }
  if (!data.validation.empty() && data.validation_fraction > 0) {
    out.push_back({{"data.validation_fraction", "data.validation"},
                   "validation texts are given as well; keep one of the two"});
  }
  const bool has_held_out = !data.validation.empty() || data.validation_fraction > 0;
  if (validation.tokens > 0 && !has_held_out) {
    out.push_back({{"validation.tokens", "data.validation", "data.validation_fraction"},
                   "there is no text to validate on; give data.validation or "
                   "data.validation_fraction"});
  }
  if (validation.every_steps > 0 && validation.tokens == 0) {
    out.push_back({{"validation.every_steps", "validation.tokens"},
                   "has no effect without validation.tokens"});
  }
}

void check_length(const Shape& shape, std::size_t i, Breaches& out) {
  if ((shape.steps > 0) == (shape.tokens > 0)) {
    out.push_back({{shape_path(i, shape.steps > 0 ? "tokens" : "steps"), shape_path(i, "tokens"),
                    shape_path(i, "steps")},
                   "give exactly one of steps and tokens, above 0"});
  }
  if (shape.sequence == 0 || shape.global_batch_tokens % shape.sequence == 0) return;
  const std::int64_t below = shape.global_batch_tokens / shape.sequence * shape.sequence;
  const std::int64_t above = below + shape.sequence;
  const std::string near =
      below > 0 ? fmt::format("{} or {}", below, above) : fmt::format("{}", above);
  out.push_back({{shape_path(i, "global_batch_tokens"), shape_path(i, "sequence")},
                 fmt::format("{} is not a multiple of sequence ({}); nearest: {}",
                             shape.global_batch_tokens, shape.sequence, near)});
}

// Keeps all later sums of tokens and steps within 64 bits.
void check_size(const Shape& shape, std::size_t i, Breaches& out) {
  constexpr double kMostSteps = 1e9;
  constexpr double kMostTokens = 1e15;
  const auto steps = static_cast<double>(steps_of(shape));
  const double tokens = steps * static_cast<double>(shape.global_batch_tokens);
  if (steps <= kMostSteps && tokens <= kMostTokens) return;
  out.push_back(
      {{shape_path(i, shape.steps > 0 ? "steps" : "tokens"), shape_path(i, "global_batch_tokens")},
       fmt::format("{:.3g} steps with {:.3g} tokens in all; at most {:.0e} and {:.0e}", steps,
                   tokens, kMostSteps, kMostTokens)});
}

// The other axes may take the rest. Where the job is not asked for here, it may have any number of
// nodes.
void check_ranks(const Cluster& cluster, std::int64_t product, const std::string& prefix,
                 Breaches& out) {
  const std::int64_t ranks = cluster.ranks_per_node, nodes = cluster.slurm.nodes;
  if (ranks <= 0 || product <= 0) return;
  if (nodes > 0 ? ranks * nodes % product == 0 : ranks % product == 0 || product % ranks == 0)
    return;
  std::string what =
      fmt::format("dp x shard is {}, but cluster.ranks_per_node is {}", product, ranks);
  if (nodes > 0) what += fmt::format(" on {} nodes", nodes);
  out.push_back({{prefix + "dp", prefix + "shard", "cluster.ranks_per_node"}, what});
}

void check_layout(const Recipe& recipe, std::size_t i, Breaches& out) {
  const Shape& shape = recipe.shapes[i];
  const Parallel& parallel = shape.parallel ? *shape.parallel : recipe.parallel;
  const std::string prefix = shape.parallel ? shape_path(i, "parallel.") : "parallel.";
  const std::int64_t product = std::int64_t{parallel.dp} * parallel.shard;
  check_ranks(recipe.cluster, product, prefix, out);
  if (parallel.prefetch && (parallel.zero == 1 || parallel.zero == 2)) {
    out.push_back(
        {{prefix + "prefetch", prefix + "zero"},
         fmt::format("has no effect with zero: {}, which gathers nothing", parallel.zero)});
  }
  const bool keeps_no_state =
      recipe.optimizer.kind == OptimizerKind::kSgd && recipe.optimizer.momentum == 0;
  if (parallel.offload == Offload::kOptimizer && keeps_no_state) {
    out.push_back({{prefix + "offload", "optimizer.momentum"},
                   "there is nothing to offload: sgd without momentum keeps no state"});
  }
  const std::int64_t rows = shape.sequence > 0 ? shape.global_batch_tokens / shape.sequence : 0;
  if (rows > 0 && parallel.micro_batch > rows) {
    out.push_back(
        {{prefix + "micro_batch", shape_path(i, "global_batch_tokens"), shape_path(i, "sequence")},
         fmt::format("{} rows, but a step of shapes.{} has {}", parallel.micro_batch, i, rows)});
  }
}

void check_pipelines(const Recipe& recipe, Breaches& out) {
  const auto check = [&](const Parallel& parallel, const std::string& prefix) {
    for (Breach& breach : check_pipeline(recipe, parallel, prefix))
      out.push_back(std::move(breach));
  };
  check(recipe.parallel, "parallel.");
  for (std::size_t i = 0; i < recipe.shapes.size(); ++i)
    if (recipe.shapes[i].parallel) check(*recipe.shapes[i].parallel, shape_path(i, "parallel."));
}

// Tasks that run at once would all train the same run.
void check_array(const Recipe& recipe, Breaches& out) {
  const std::string& array = recipe.cluster.slurm.array;
  const std::string path = "cluster.slurm.array";
  if (!num_tasks(array))
    out.push_back({{path},
                   fmt::format("'{}' is no chain of jobs that go on with one run, one after the "
                               "other; give how many, such as 9 or 1-9%1. A sweep is an array of "
                               "your own: docs/launching.md has one",
                               array)});
  if (!array.empty() && recipe.failure.time_limit != AtTimeLimit::kStop)
    out.push_back({{path, "failure.time_limit"},
                   "the next task goes on when the time is up, and so does what "
                   "failure.time_limit asks for; leave one of the two out"});
}

void check_shapes(const Recipe& recipe, Breaches& out) {
  if (recipe.shapes.empty()) out.push_back({{"shapes"}, "needs at least one entry"});
  for (std::size_t i = 0; i < recipe.shapes.size(); ++i) {
    const Shape& shape = recipe.shapes[i];
    check_name(shape_path(i, "name"), shape.name, out);
    for (std::size_t j = 0; j < i; ++j) {
      if (recipe.shapes[j].name != shape.name) continue;
      out.push_back({{shape_path(i, "name")},
                     fmt::format("'{}' is also the name of shapes.{}", shape.name, j)});
      break;
    }
    check_length(shape, i, out);
    check_size(shape, i, out);
    check_layout(recipe, i, out);
  }
}

// A field that the kind of optimizer makes no use of keeps its default.
void check_optimizer(const Recipe& recipe, Breaches& out) {
  constexpr std::string_view kSection = "optimizer.";
  const std::string kind = std::get<std::string>(find_field("optimizer.kind")->get(recipe, 0));
  for (const Field& field : fields()) {
    if (!field.path.starts_with(kSection)) continue;
    const bool changed = field.get(recipe, 0) != field.get(Recipe{}, 0);
    if (!changed || uses(recipe.optimizer.kind, field.path.substr(kSection.size()))) continue;
    out.push_back({{field.path, "optimizer.kind"},
                   fmt::format("has no effect with kind: {}; leave it out", kind)});
  }
}

// What the numbers of the run cannot hold is 0 to them: a gradient that is zero, as of a token that
// never comes, would be divided by it.
void check_eps(const Recipe& recipe, Breaches& out) {
  const bool wide = recipe.precision == Precision::kFloat64;
  const double least =
      wide ? std::numeric_limits<double>::min() : double{std::numeric_limits<float>::min()};
  const double eps = recipe.optimizer.eps;
  if (eps == 0 || eps >= least) return;
  out.push_back({{"optimizer.eps", "precision"},
                 fmt::format("{} is 0 in the numbers of {}, so that a gradient of zero would be "
                             "divided by 0; give {:.1g} or more (1e-8 is usual)",
                             eps, wide ? "fp64" : "fp32", 10 * least)});
}

void check_decay_steps(const Recipe& recipe, std::int64_t total, Breaches& out) {
  const LearningRate& rate = recipe.learning_rate;
  const bool is_wsd = rate.decay == Decay::kWsd;
  const std::vector<std::string> paths{"learning_rate.decay_steps", "learning_rate.decay"};
  if (is_wsd && rate.decay_steps == 0) out.push_back({paths, "is needed with decay: wsd, above 0"});
  if (!is_wsd && rate.decay_steps > 0)
    out.push_back({paths, "has an effect with decay: wsd only; leave it out"});
  if (is_wsd && rate.warmup_steps <= total && rate.warmup_steps + rate.decay_steps > total)
    out.push_back({{"learning_rate.decay_steps", "learning_rate.warmup_steps", "shapes"},
                   fmt::format("{} steps beside {} of warm-up, but the run has {}",
                               rate.decay_steps, rate.warmup_steps, total)});
}

void check_rate(const Recipe& recipe, Breaches& out) {
  const LearningRate& rate = recipe.learning_rate;
  if (rate.decay == Decay::kConstant && rate.final_fraction != LearningRate{}.final_fraction) {
    out.push_back({{"learning_rate.final", "learning_rate.decay"},
                   "has no effect with decay: constant; leave it out"});
  }
  std::int64_t total = 0;
  for (const Shape& shape : recipe.shapes) total += steps_of(shape);
  check_decay_steps(recipe, total, out);
  if (rate.warmup_steps <= total) return;
  out.push_back({{"learning_rate.warmup_steps", "shapes"},
                 fmt::format("{} steps, but the run has {}", rate.warmup_steps, total)});
}

}  // namespace

std::vector<Breach> check(const Recipe& recipe) {
  Breaches out;
  check_name("name", recipe.name, out);
  check_family(recipe, out);
  if (recipe.model.hf.empty()) check_model(recipe.model, out);  // else config.json was checked
  check_heads(recipe.model, out);
  check_vocabulary(recipe, out);
  check_data(recipe, out);
  check_shapes(recipe, out);
  check_pipelines(recipe, out);
  check_array(recipe, out);
  check_optimizer(recipe, out);
  check_eps(recipe, out);
  check_rate(recipe, out);
  return out;
}

}  // namespace ptrain::recipe
