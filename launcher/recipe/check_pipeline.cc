#include "launcher/recipe/check_pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "core/model/family.h"
#include "core/recipe/node.h"
#include "core/recipe/pipeline_fields.h"
#include "core/recipe/spelling.h"
#include "core/recipe/stage_lists.h"
#include "core/schedule/catalogue.h"
#include "launcher/recipe/resolve.h"
#include "launcher/recipe/schedule_files.h"

namespace ptrain::recipe {
namespace {

std::vector<std::string> runnable_schedules() {
  std::vector<std::string> names;
  for (const schedule::Entry& entry : schedule::catalogue())
    if (entry.num_copies == 1) names.emplace_back(entry.name);
  return names;
}

class Pipeline {
 public:
  Pipeline(const Recipe& recipe, const Parallel& parallel, std::string prefix)
      : recipe_(recipe), parallel_(parallel), prefix_(std::move(prefix)) {}

  std::vector<Breach> check() && {
    check_schedule();
    check_single_stage();
    check_depth();
    check_stages();
    check_recompute();
    check_dtypes();
    check_spread();
    check_vocabulary();
    check_optimizer();
    return std::move(out_);
  }

 private:
  // A field that begins with a colon is one of the whole recipe.
  void add(const std::vector<std::string>& fields, std::string message) {
    Breach breach{{}, std::move(message)};
    for (const std::string& field : fields)
      breach.paths.push_back(field.starts_with(':') ? field.substr(1) : prefix_ + field);
    out_.push_back(std::move(breach));
  }

  // Embedding and head count as a layer each; 0: the model is not known.
  std::int64_t num_layers() const {
    const std::int64_t blocks = recipe_.model.num_hidden_layers;
    return blocks > 0 ? blocks + 2 : 0;
  }

  // Null where the planner chooses, and for a file.
  const schedule::Entry* entry() const {
    const bool is_name = !parallel_.schedule.empty() && !is_schedule_file(parallel_.schedule);
    return is_name ? schedule::find(parallel_.schedule) : nullptr;
  }

  // Of a rank, where the recipe says so; else 0.
  int num_virtual() const {
    if (parallel_.num_virtual > 0) return parallel_.num_virtual;
    const schedule::Entry* named = entry();
    const bool has_one_number =
        named != nullptr && named->num_virtual.least == named->num_virtual.most;
    return has_one_number ? named->num_virtual.least : 0;
  }

  void check_schedule() {
    if (parallel_.schedule.empty() || is_schedule_file(parallel_.schedule)) return;
    const schedule::Entry* named = entry();
    const std::vector<std::string> names = runnable_schedules();
    const std::string allowed =
        fmt::format("allowed: {}, each of them with _2bp behind it, or a file that ends in .csv",
                    fmt::join(names, ", "));
    if (named == nullptr) {
      const std::string near = nearest(parallel_.schedule, names);
      return add({"schedule"},
                 fmt::format("unknown value '{}'; {}{}", shown(parallel_.schedule), allowed,
                             near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
    }
    if (named->num_copies > 1)
      return add({"schedule"},
                 fmt::format("{} holds the weights twice, which can be simulated, but "
                             "not run; {}",
                             parallel_.schedule, allowed));
    const schedule::VirtualRule& rule = named->num_virtual;
    if (parallel_.num_virtual > 0 && !rule.allows(parallel_.num_virtual))
      add({"virtual", "schedule"},
          fmt::format(
              "schedule {} does not run with {} stages a rank; the nearest number that works "
              "is {}",
              parallel_.schedule, parallel_.num_virtual, rule.nearest(parallel_.num_virtual)));
  }

  static const char* remedy_of(std::string_view field_of_one_stage) {
    if (field_of_one_stage == "stage_recompute") return "give recompute in its place";
    if (field_of_one_stage == "stage_dtype") return "give precision in its place";
    return "leave it out";
  }

  // What has no meaning where the recipe says that there is no pipeline.
  void check_single_stage() {
    if (parallel_.pp != 1) return;
    for (const PipelineField& field : pipeline_fields_in(parallel_))
      add({std::string(field.name), "pp"},
          fmt::format("there is one stage, since pp is 1: {}", remedy_of(field.name)));
  }

  void check_depth() {
    const std::int64_t stages = std::int64_t{parallel_.pp} * std::max(1, num_virtual());
    const bool shares = parallel_.embedding == Embedding::kAllStages && parallel_.pp > 1;
    const std::int64_t most = num_layers() - (shares ? 1 : 0);
    if (num_layers() == 0 || stages <= most) return;
    add({"pp", "virtual", "schedule", ":model.num_hidden_layers"},
        fmt::format("{} stages (pp x virtual), but the model has {} layers, embedding and head "
                    "counted{}: give at most {}",
                    stages, num_layers(), shares ? ", of which all stages share the first" : "",
                    most));
  }

  // Whether a list has as many entries as there are stages, as far as the recipe says how many.
  bool check_num_entries(const char* field, std::size_t size) {
    const auto count = static_cast<std::int64_t>(size);
    if (parallel_.pp <= 1) return true;
    const int per_rank = num_virtual();
    const std::int64_t wanted = std::int64_t{parallel_.pp} * per_rank;
    if (per_rank > 0 ? count == wanted : count % parallel_.pp == 0) return true;
    const std::string given = fmt::format("{} {}", count, count == 1 ? "entry" : "entries");
    const std::string wrong =
        per_rank > 0 ? fmt::format("{}, but there are {} stages: give {} (pp x virtual)", given,
                                   wanted, wanted)
                     : fmt::format("{} do not divide over pp {}: give pp x virtual of them", given,
                                   parallel_.pp);
    add({field, "pp", "virtual", "schedule"}, wrong);
    return false;
  }

  void check_stages() {
    if (parallel_.stages.empty()) return;
    const auto counts = stage_layers_in(parallel_.stages);
    if (!counts) return add({"stages"}, counts.error());
    if (counts->front() == 1 && parallel_.embedding == Embedding::kAllStages && parallel_.pp > 1)
      add({"stages", "embedding"},
          "the first stage has nothing but the embedding, which all stages share: give it a block "
          "too");
    if (!check_num_entries("stages", counts->size()) || num_layers() == 0) return;
    const auto sum = std::accumulate(counts->begin(), counts->end(), std::int64_t{0});
    if (sum == num_layers()) return;
    add({"stages", ":model.num_hidden_layers"},
        fmt::format(
            "{} layers in all, but the model has {}, embedding and head counted: give counts "
            "that add up to {}",
            sum, num_layers(), num_layers()));
  }

  void check_recompute() {
    if (parallel_.stage_recompute.empty()) return;
    if (parallel_.recompute)
      add({"stage_recompute", "recompute"}, "recompute is given as well; keep one of the two");
    const auto words = stage_recompute_in(parallel_.stage_recompute);
    if (!words) return add({"stage_recompute"}, words.error());
    check_num_entries("stage_recompute", words->size());
  }

  void check_dtypes() {
    if (parallel_.stage_dtype.empty()) return;
    if (recipe_.precision == Precision::kFloat64)
      add({"stage_dtype", ":precision"},
          "precision is fp64, in which all stages multiply; allowed beside it: fp32, bf16");
    const auto words = stage_dtypes_in(parallel_.stage_dtype);
    if (!words) return add({"stage_dtype"}, words.error());
    if (!check_num_entries("stage_dtype", words->size())) return;
    const bool is_tied = model::with_defaults(recipe_.model).tie_word_embeddings;
    if (is_tied && words->front() != words->back())
      add({"stage_dtype", ":model.tie_word_embeddings"},
          "the head is tied to the embedding: give the first and the last stage the same dtype");
  }

  // A tied matrix is whole at both ends of the pipeline, or spread for both.
  void check_spread() {
    const bool embedding = parallel_.embedding == Embedding::kAllStages;
    const bool head = parallel_.head == Head::kAllStages;
    if (embedding == head || !model::with_defaults(recipe_.model).tie_word_embeddings) return;
    add({head ? "head" : "embedding", ":model.tie_word_embeddings"},
        fmt::format("its matrix is the {} stage holds whole; allowed: {}_stage, all_stages for "
                    "both, or untie them (model.tie_word_embeddings: false)",
                    head ? "embedding's too, which the first" : "head's too, which the last",
                    head ? "last" : "first"));
  }

  // 0: not known before the tokenizer's file is read.
  std::int64_t num_tokens() const {
    if (recipe_.model.vocab_size > 0) return recipe_.model.vocab_size;
    return recipe_.data.tokenizer == "byte" ? padded_vocabulary(kByteTokens) : 0;
  }

  // A field that asks for a matrix of the vocabulary on all stages, and which stage else holds it.
  struct Spread {
    const char *field, *stage;
  };
  std::optional<Spread> spread() const {
    if (parallel_.head == Head::kAllStages) return Spread{"head", "last"};
    if (parallel_.embedding == Embedding::kAllStages) return Spread{"embedding", "first"};
    return std::nullopt;
  }

  // A tp that the planner chooses may be 1.
  void check_vocabulary() {
    const std::int64_t rows = num_tokens();
    const std::int64_t ranks = std::int64_t{parallel_.pp} * std::max(1, parallel_.tp);
    const auto matrix = spread();
    if (!matrix || rows == 0 || rows >= ranks) return;
    add({matrix->field, "pp", "tp", ":model.vocab_size"},
        fmt::format("a vocabulary of {} has fewer rows than the {} ranks of pp x tp that would "
                    "share them; allowed: {}_stage, or at most {} ranks",
                    rows, ranks, matrix->stage, rows));
  }

  // Its state has a scale for each block of values from a matrix's start.
  void check_optimizer() {
    const auto matrix = spread();
    if (!matrix || recipe_.optimizer.kind != OptimizerKind::kAdam8bit) return;
    add({matrix->field, ":optimizer.kind"},
        fmt::format(
            "the blocks of adam8bit's state would be cut; allowed: {}_stage, or an optimizer "
            "of single values, such as adamw",
            matrix->stage));
  }

  const Recipe& recipe_;
  const Parallel& parallel_;
  const std::string prefix_;
  std::vector<Breach> out_;
};

}  // namespace

std::vector<Breach> check_pipeline(const Recipe& recipe, const Parallel& parallel,
                                   const std::string& prefix) {
  return Pipeline(recipe, parallel, prefix).check();
}

}  // namespace ptrain::recipe
