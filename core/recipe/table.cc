// The table of the recipe: one row a field. Rows are in the order of docs/recipe.md.
#include <type_traits>
#include <utility>

#include "core/recipe/field.h"

namespace ptrain::recipe {
namespace {

constexpr double kMostSteps = 1e9;
constexpr double kMostTokens = 1e15;

// What turns a Recipe, const or not, into the struct that holds a field.
constexpr auto in_recipe = [](auto& recipe, std::size_t) -> auto& { return recipe; };
constexpr auto in_model = [](auto& recipe, std::size_t) -> auto& { return recipe.model; };
constexpr auto in_data = [](auto& recipe, std::size_t) -> auto& { return recipe.data; };
constexpr auto in_packing = [](auto& recipe, std::size_t) -> auto& { return recipe.data.packing; };
constexpr auto in_train = [](auto& recipe, std::size_t i) -> auto& { return recipe.data.train[i]; };
constexpr auto in_held_out = [](auto& recipe, std::size_t i) -> auto& {
  return recipe.data.validation[i];
};
constexpr auto in_shape = [](auto& recipe, std::size_t i) -> auto& { return recipe.shapes[i]; };
constexpr auto in_optimizer = [](auto& recipe, std::size_t) -> auto& { return recipe.optimizer; };
constexpr auto in_rate = [](auto& recipe, std::size_t) -> auto& { return recipe.learning_rate; };
constexpr auto in_parallel = [](auto& recipe, std::size_t) -> auto& { return recipe.parallel; };
constexpr auto in_shape_parallel = [](auto& recipe, std::size_t i) -> auto& {
  return *recipe.shapes[i].parallel;
};
constexpr auto in_checkpoint = [](auto& recipe, std::size_t) -> auto& { return recipe.checkpoint; };
constexpr auto in_validation = [](auto& recipe, std::size_t) -> auto& { return recipe.validation; };
constexpr auto in_cluster = [](auto& recipe, std::size_t) -> auto& { return recipe.cluster; };
constexpr auto in_failure = [](auto& recipe, std::size_t) -> auto& { return recipe.failure; };
constexpr auto in_log = [](auto& recipe, std::size_t) -> auto& { return recipe.log; };

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

template <class... Parts>
void append(std::vector<Field>& all, Parts... rows) {
  (all.push_back(std::move(rows)), ...);
}

void add_top(std::vector<Field>& all) {
  append(all,
         row({.path = "version",
              .required = true,
              .range = {1, 1},
              .description = "Version of the recipe's format."},
             in_recipe, &Recipe::version),
         row({.path = "name",
              .required = true,
              .description = "Name of the run's folder: letters, digits, `.`, `_`, `-`."},
             in_recipe, &Recipe::name),
         row({.path = "seed",
              .range = {0, 9223372036854775807.0},
              .description = "Start of all random numbers: weights and the order of documents."},
             in_recipe, &Recipe::seed),
         choice<decltype(in_recipe), Recipe, Precision>(
             {.path = "precision",
              .unavailable = {"bf16"},
              .description = "Numbers of weights and activations; fp64 serves comparisons."},
             in_recipe, &Recipe::precision,
             {{"fp32", Precision::kFloat32}, {"fp64", Precision::kFloat64}}));
}

void add_model_sizes(std::vector<Field>& all) {
  append(all,
         row({.path = "model.hidden_size",
              .unit = "elements",
              .required = true,
              .range = {1, 1 << 20},
              .description = "Width of the residual stream."},
             in_model, &Model::hidden_size),
         row({.path = "model.intermediate_size",
              .unit = "elements",
              .required = true,
              .range = {1, 1 << 22},
              .description = "Width inside the feed-forward part."},
             in_model, &Model::intermediate_size),
         row({.path = "model.num_hidden_layers",
              .unit = "layers",
              .required = true,
              .range = {1, 4096},
              .description = "Number of blocks."},
             in_model, &Model::num_hidden_layers),
         row({.path = "model.num_attention_heads",
              .unit = "heads",
              .required = true,
              .range = {1, 65536},
              .description = "Number of query heads."},
             in_model, &Model::num_attention_heads),
         row({.path = "model.num_key_value_heads",
              .unit = "heads",
              .range = {0, 65536},
              .description = "Number of key and value heads; 0: as many as query heads."},
             in_model, &Model::num_key_value_heads),
         row({.path = "model.head_dim",
              .unit = "elements",
              .range = {0, 65536},
              .description = "Size of a head, even; 0: hidden_size / num_attention_heads."},
             in_model, &Model::head_dim),
         row({.path = "model.vocab_size",
              .unit = "tokens",
              .range = {0, 1 << 24},
              .description = "Rows of the embedding; 0: what the tokenizer needs, padded to a "
                             "multiple of 64."},
             in_model, &Model::vocab_size));
}

void add_model(std::vector<Field>& all) {
  append(all,
         row({.path = "model.file",
              .description = "YAML file with the fields of `model`, beside the recipe or in "
                             "configs/models; fields given here win over the file's."},
             in_model, &Model::file),
         row({.path = "model.family",
              .choices = {"llama"},
              .unavailable = {"qwen3", "mixtral", "gpt2"},
              .description = "Architecture."},
             in_model, &Model::family));
  add_model_sizes(all);
  append(all,
         row({.path = "model.rms_norm_eps",
              .range = {0, 1, true},
              .description = "Added to the mean square in RMSNorm."},
             in_model, &Model::rms_norm_eps),
         row({.path = "model.rope_theta",
              .range = {1, 1e12},
              .description = "Base of the rotary angles."},
             in_model, &Model::rope_theta),
         row({.path = "model.initializer_range",
              .range = {0, 10, true},
              .description = "Standard deviation of the initial weights."},
             in_model, &Model::initializer_range),
         row({.path = "model.tie_word_embeddings",
              .description = "Whether the head uses the embedding's weights."},
             in_model, &Model::tie_word_embeddings));
}

template <class Owner>
Field format_row(const char* path, Owner owner) {
  return choice<Owner, DataSource, Format>(
      {.path = path,
       .description = "text: a file is a document; jsonl: a line is (`text`, `prompt` and "
                      "`completion`, or `messages`); bin: tokens of nanoGPT or llm.c; megatron: "
                      "tokens and their .idx; auto: by the file's name."},
      owner, &DataSource::format,
      {{"auto", Format::kAuto},
       {"text", Format::kText},
       {"jsonl", Format::kJsonl},
       {"bin", Format::kBin},
       {"megatron", Format::kMegatron}});
}

void add_data(std::vector<Field>& all) {
  append(
      all,
      row({.path = "data.tokenizer",
           .choices = {"byte", "none"},
           .unavailable = {"sentencepiece", "hf"},
           .description = "byte: tokens are the bytes of the text, and an end of document; none: "
                          "all files hold tokens already, and `model.vocab_size` is given."},
          in_data, &Data::tokenizer),
      row({.path = "data.train[].path",
           .required = true,
           .description = "A text file or a glob (`**` matches folders), relative to the recipe."},
          in_train, &DataSource::path),
      format_row("data.train[].format", in_train),
      row({.path = "data.train[].weight",
           .range = {0, 1000, true},
           .description = "How often each document of the source comes in an epoch, in the mean: "
                          "0.5 takes half of them, in turn; 2 takes all twice."},
          in_train, &DataSource::weight),
      row({.path = "data.validation[].path",
           .required = true,
           .description = "As in `data.train`."},
          in_held_out, &DataSource::path),
      format_row("data.validation[].format", in_held_out),
      row({.path = "data.validation_fraction",
           .range = {0, 0.5},
           .description = "Share of the training documents that is held out for validation, "
                          "where `data.validation` is not given."},
          in_data, &Data::validation_fraction),
      row({.path = "data.end_token",
           .unit = "token",
           .range = {-1, 2147483646},
           .description = "Token that ends a document in a `bin` file (50256 for GPT-2); -1: "
                          "not known."},
          in_data, &Data::end_token),
      row({.path = "data.max_documents",
           .unit = "documents",
           .range = {0, 1e15},
           .description = "Use only so many documents; 0: all."},
          in_data, &Data::max_documents),
      choice<decltype(in_packing), Packing, packing::Strategy>(
          {.path = "data.packing.strategy",
           .description = "How documents fill rows: the first two keep the order in which they "
                          "come, the third takes the longest first and wastes least."},
          in_packing, &Packing::strategy,
          {{"next_fit", packing::Strategy::kNextFit},
           {"first_fit", packing::Strategy::kFirstFit},
           {"best_fit_decreasing", packing::Strategy::kBestFitDecreasing}}),
      row({.path = "data.packing.window",
           .unit = "documents",
           .range = {1, 1 << 24},
           .description = "Documents that are packed into rows together."},
          in_packing, &Packing::window),
      row({.path = "data.cache",
           .description = "Folder of the token index, relative to the recipe; empty: the user's "
                          "cache folder."},
          in_data, &Data::cache));
}

void add_shapes(std::vector<Field>& all) {
  append(
      all,
      row({.path = "shapes[].name",
           .required = true,
           .description = "Name of the shape: letters, digits, `.`, `_`, `-`; no two alike."},
          in_shape, &Shape::name),
      row({.path = "shapes[].sequence",
           .unit = "tokens",
           .required = true,
           .range = {2, 1 << 24},
           .description = "Length of a packed row."},
          in_shape, &Shape::sequence),
      row({.path = "shapes[].global_batch_tokens",
           .unit = "tokens",
           .required = true,
           .range = {2, 1e12},
           .description = "Rows x sequence of one step over all ranks: a multiple of `sequence`."},
          in_shape, &Shape::global_batch_tokens),
      row({.path = "shapes[].steps",
           .unit = "steps",
           .range = {0, kMostSteps},
           .description = "Length of the shape; this or `tokens`."},
          in_shape, &Shape::steps),
      row({.path = "shapes[].tokens",
           .unit = "tokens",
           .range = {0, kMostTokens},
           .description = "Length of the shape in tokens, rounded up to whole steps."},
          in_shape, &Shape::tokens));
}

// The rows of a layout, once for the general one and once for a shape's own.
template <class Owner>
void add_parallel(std::vector<Field>& all, const std::string& prefix, Owner owner) {
  append(all,
         row({.path = prefix + "dp",
              .unit = "ranks",
              .range = {1, 1 << 20},
              .zero_word = "auto",
              .description = "Replicas of the parameters."},
             owner, &Parallel::dp),
         row({.path = prefix + "shard",
              .unit = "ranks",
              .range = {1, 1 << 20},
              .zero_word = "auto",
              .description = "Ranks over which a replica is sharded."},
             owner, &Parallel::shard),
         row({.path = prefix + "zero",
              .range = {1, 3},
              .zero_word = "auto",
              .description = "1: states sharded, gradients reduced once a step; 2: reduced each "
                             "micro-batch; 3: parameters sharded too."},
             owner, &Parallel::zero),
         row({.path = prefix + "micro_batch",
              .unit = "rows",
              .range = {1, 1 << 24},
              .zero_word = "auto",
              .description = "Rows of one forward pass on a rank."},
             owner, &Parallel::micro_batch),
         choice<Owner, Parallel, std::optional<Recompute>>(
             {.path = prefix + "recompute",
              .unavailable = {"selective"},
              .description = "full: keep only each layer's input and compute the rest again."},
             owner, &Parallel::recompute,
             {{"auto", std::nullopt}, {"none", Recompute::kNone}, {"full", Recompute::kFull}}),
         optional_row({.path = prefix + "prefetch",
                       .unit = "layers",
                       .range = {0, 1024},
                       .absent_word = "auto",
                       .description = "Layers gathered ahead of the one that computes (zero 3)."},
                      owner, &Parallel::prefetch));
}

void add_optimizer(std::vector<Field>& all) {
  append(all,
         row({.path = "optimizer.kind",
              .choices = {"adamw"},
              .unavailable = {"muon", "adafactor", "lion", "sgd"},
              .description = "Update rule."},
             in_optimizer, &Optimizer::kind),
         row({.path = "optimizer.betas.0",
              .range = {0, 1, false, true},
              .description = "Decay of the mean of gradients."},
             in_optimizer, &Optimizer::beta1),
         row({.path = "optimizer.betas.1",
              .range = {0, 1, false, true},
              .description = "Decay of the mean of squared gradients."},
             in_optimizer, &Optimizer::beta2),
         row({.path = "optimizer.eps",
              .range = {0, 1, true},
              .description = "Added to the root of the mean square."},
             in_optimizer, &Optimizer::eps),
         row({.path = "optimizer.weight_decay",
              .range = {0, 10},
              .description = "Decay of weights, times the learning rate; not on norms and biases."},
             in_optimizer, &Optimizer::weight_decay),
         row({.path = "optimizer.clip_norm",
              .range = {0, 1e9},
              .description = "Largest norm of all gradients together; 0: no clipping."},
             in_optimizer, &Optimizer::clip_norm));
}

void add_learning_rate(std::vector<Field>& all) {
  append(all,
         row({.path = "learning_rate.peak",
              .range = {0, 100, true},
              .description = "Learning rate after the warm-up."},
             in_rate, &LearningRate::peak),
         row({.path = "learning_rate.warmup_steps",
              .unit = "steps",
              .range = {0, kMostSteps},
              .description = "Steps of linear growth at the start of the run."},
             in_rate, &LearningRate::warmup_steps),
         choice<decltype(in_rate), LearningRate, Decay>(
             {.path = "learning_rate.decay",
              .unavailable = {"linear", "wsd", "inverse_sqrt"},
              .description = "Course after the warm-up."},
             in_rate, &LearningRate::decay,
             {{"cosine", Decay::kCosine}, {"constant", Decay::kConstant}}),
         row({.path = "learning_rate.final",
              .range = {0, 1},
              .description = "Share of the peak that is left at the last step (cosine)."},
             in_rate, &LearningRate::final_fraction));
}

void add_upkeep(std::vector<Field>& all) {
  append(all,
         row({.path = "checkpoint.every_steps",
              .unit = "steps",
              .range = {0, kMostSteps},
              .description = "0: only at the end of each shape."},
             in_checkpoint, &Checkpoint::every_steps),
         row({.path = "checkpoint.every_minutes",
              .unit = "minutes",
              .range = {0, 1e6},
              .description = "0: never by the clock."},
             in_checkpoint, &Checkpoint::every_minutes),
         row({.path = "checkpoint.keep",
              .unit = "checkpoints",
              .range = {1, 1e6},
              .description = "Newest checkpoints that stay."},
             in_checkpoint, &Checkpoint::keep),
         row({.path = "validation.every_steps",
              .unit = "steps",
              .range = {0, kMostSteps},
              .description = "0: only at the end of the run."},
             in_validation, &Validation::every_steps),
         row({.path = "validation.tokens",
              .unit = "tokens",
              .range = {0, kMostTokens},
              .description = "Held-out tokens of one validation; 0: no validation."},
             in_validation, &Validation::tokens),
         row({.path = "validation.sample_tokens",
              .unit = "tokens",
              .range = {0, 1 << 20},
              .description = "Length of the text that is generated at the end of the run."},
             in_validation, &Validation::sample_tokens));
}

void add_machine(std::vector<Field>& all) {
  append(all,
         row({.path = "cluster.file",
              .description = "YAML file that describes the machines, beside the recipe or in "
                             "configs/clusters; empty: this machine is looked at."},
             in_cluster, &Cluster::file),
         row({.path = "cluster.ranks_per_node",
              .unit = "ranks",
              .range = {1, 65536},
              .zero_word = "auto",
              .description = "auto: one a physical core."},
             in_cluster, &Cluster::ranks_per_node),
         row({.path = "failure.max_restarts",
              .unit = "restarts",
              .range = {0, 1e6},
              .description = "Automatic restarts from the newest good checkpoint."},
             in_failure, &Failure::max_restarts),
         choice<decltype(in_failure), Failure, OnNonFinite>(
             {.path = "failure.nonfinite",
              .description = "What a loss or gradient norm that is not a number does to the run."},
             in_failure, &Failure::nonfinite,
             {{"stop", OnNonFinite::kStop}, {"skip", OnNonFinite::kSkip}}),
         row({.path = "failure.hang_timeout",
              .unit = "seconds",
              .range = {1, 1e6},
              .zero_word = "auto",
              .description = "Silence that counts as a hang; auto: from the time of a step."},
             in_failure, &Failure::hang_timeout_s),
         row({.path = "log.every_steps",
              .unit = "steps",
              .range = {1, kMostSteps},
              .description = "How often progress is written where there is no terminal."},
             in_log, &Log::every_steps),
         row({.path = "log.trace_steps",
              .unit = "steps",
              .range = {0, 1e6},
              .description = "First steps of each attempt that are written to trace/."},
             in_log, &Log::trace_steps));
}

std::vector<Field> make_fields() {
  std::vector<Field> all;
  add_top(all);
  add_model(all);
  add_data(all);
  add_shapes(all);
  add_parallel(all, "shapes[].parallel.", in_shape_parallel);
  add_optimizer(all);
  add_learning_rate(all);
  add_parallel(all, "parallel.", in_parallel);
  add_upkeep(all);
  add_machine(all);
  return all;
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> all = make_fields();
  return all;
}

}  // namespace ptrain::recipe
