#include "tests/random/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/packing/random.h"
#include "core/program/compile.h"
#include "core/schedule/catalogue.h"
#include "launcher/plan/axes.h"
#include "launcher/plan/rules/rules.h"
#include "tests/random/experiment.h"
#include "tests/support/small_model.h"

namespace ptrain::random {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t key) : stream_(key) {}
  bool percent(std::uint64_t chance) { return stream_.below(100) < chance; }
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(stream_.below(static_cast<std::uint64_t>(bound)));
  }
  template <class T>
  T of(std::initializer_list<T> values) {
    return values.begin()[below(std::ssize(values))];
  }
  template <class T>
  const T& of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(std::ssize(values)))];
  }

 private:
  packing::RandomStream stream_;
};

constexpr std::initializer_list<const char*> kFamilies = {
    "llama",  "mistral", "qwen2",     "qwen3",       "gpt2",       "gemma2",
    "gemma3", "mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"};

constexpr std::initializer_list<const char*> kOptimizers = {"adamw", "muon",  "adamw", "adam8bit",
                                                            "lion",  "adamw", "sgd"};

void draw_sizes(Dice& dice, Case& one) {
  one.layers = dice.of<std::int64_t>({1, 2, 3, 4, 6});
  one.hidden = dice.of<std::int64_t>({12, 16, 24});
  one.ffn = dice.of<std::int64_t>({24, 40, 48});
  one.heads = dice.of<std::int64_t>({2, 4, 6, 8});
  one.kv_heads = one.heads / dice.of<std::int64_t>({1, 1, 2, one.heads});
  one.head_dim = dice.of<std::int64_t>({2, 4, 6});
  one.vocab = dice.of<std::int64_t>({48, 61, 64, 96});
  one.tied = dice.below(2);
  one.experts = dice.of<std::int64_t>({4, 6, 8});
  one.topk = dice.of<std::int64_t>({2, 3});
  one.expert_ffn = dice.of<std::int64_t>({6, 8, 12});
  one.capacity_percent = dice.percent(25) ? 80 : 0;
  if (one.family == "gpt2") one.hidden = one.heads * dice.of<std::int64_t>({2, 4});
}

// States of eight bits are those of matrices from 4096 elements on.
void grow_for_eight_bits(Case& one) {
  one.hidden = 64;
  one.heads = one.kv_heads = 4;
  one.head_dim = 16;
  one.ffn = one.vocab = 96;
  one.layers = std::min<std::int64_t>(one.layers, 3);
}

Case draw_problem(Dice& dice, std::int64_t number) {
  Case one;
  one.family = kFamilies.begin()[number % std::ssize(kFamilies)];
  draw_sizes(dice, one);
  one.optimizer = kOptimizers.begin()[number % std::ssize(kOptimizers)];
  if (one.optimizer == "adam8bit") grow_for_eight_bits(one);
  // The first layer of most families with experts is dense.
  if (support::has_experts(one.family)) one.layers = std::max<std::int64_t>(one.layers, 2);
  one.precision = dice.percent(15) && !support::has_experts(one.family) ? "fp32" : "fp64";
  // Rounding turns signs, and codes of eight bits.
  if (one.precision == "fp32" && one.optimizer != "sgd") one.optimizer = "adamw";
  one.packing =
      dice.of({"whole_document", "one_document", "next_fit", "first_fit", "best_fit_decreasing"});
  one.sequence = dice.of<std::int64_t>({8, 12, 16, 24});
  one.rows = dice.of<std::int64_t>({4, 6, 8, 12, 16});
  one.steps = 3;
  one.seed = 1 + dice.below(1000);
  return one;
}

std::vector<std::string> runnable_schedules() {
  std::vector<std::string> names{"random"};
  for (const schedule::Entry& entry : schedule::catalogue())
    if (entry.num_copies == 1) names.emplace_back(entry.name);
  return names;
}

// A few stages a rank that the schedule has.
std::int64_t draw_virtual(Dice& dice, const std::string& name) {
  const schedule::Entry* entry = schedule::find(name);
  if (entry == nullptr) return 1 + dice.below(2);
  const auto& rule = entry->num_virtual;
  const std::int64_t more = rule.most == 0 ? dice.below(2) : 0;
  return rule.least + more * rule.step;
}

// Counts that add up to all layers, at least one a stage, of the first at least so many.
std::string draw_stages(Dice& dice, std::int64_t num_layers, std::int64_t num_stages,
                        std::int64_t least_of_first) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(num_stages), 1);
  counts.front() = least_of_first;
  for (std::int64_t i = num_stages - 1 + least_of_first; i < num_layers; ++i)
    counts[static_cast<std::size_t>(dice.below(num_stages))] += 1;
  std::string text;
  for (const std::int64_t count : counts)
    text += fmt::format("{}{}", text.empty() ? "" : ",", count);
  return text;
}

// One for each stage.
std::string draw_words(Dice& dice, std::int64_t num_stages,
                       std::initializer_list<const char*> words) {
  std::string text;
  for (std::int64_t stage = 0; stage < num_stages; ++stage)
    text += fmt::format("{}{}", stage == 0 ? "" : ",", dice.of(words));
  return text;
}

bool has_axis(std::string_view name) {
  return std::ranges::any_of(plan::axes(),
                             [&](const plan::Axis& axis) { return axis.name == name; });
}

// One walk along the planner's axes.
class Walk {
 public:
  Walk(Dice& dice, const Case& problem, const model::Architecture& architecture)
      : dice_(dice), case_(problem), space_(space_of(problem, architecture)) {}

  // `schedule`: of the pipeline that it must be; empty: it must be none.
  std::optional<Case> over(int num_ranks, const std::string& schedule) {
    space_.num_ranks = num_ranks;
    space_.shared_window = dice_.percent(40) && num_ranks > 1;
    if (dice_.percent(20)) space_.offload = recipe::Offload::kOptimizer;
    // The planner itself looks into no others.
    if (has_axis("etp") && support::has_experts(case_.family))
      space_.fixed.etp = dice_.of({1, 1, 2});
    layout_.shared_window = space_.shared_window;
    layout_.offload = space_.offload;
    for (const plan::Axis& axis : plan::axes()) {
      if (!set(axis)) return std::nullopt;
      if (axis.name != "pp") continue;
      if (schedule.empty() != (layout_.pp == 1)) return std::nullopt;
      if (layout_.pp > 1) wish(schedule);
    }
    return with_layout();
  }

 private:
  void wish(const std::string& schedule) {
    const bool two_stage = schedule != "random" && dice_.percent(15);
    case_.schedule = space_.fixed.schedule = schedule + (two_stage ? "_2bp" : "");
    const std::int64_t num_virtual = draw_virtual(dice_, schedule);
    space_.fixed.num_virtual = static_cast<int>(num_virtual);
    const std::int64_t num_stages = layout_.pp * num_virtual;
    const auto num_layers = static_cast<std::int64_t>(space_.architecture->layers.size());
    // Of a tied model both or none.
    const bool embedding = dice_.percent(30);
    if (embedding) spread_embedding();
    if (case_.tied != 0 ? embedding : dice_.percent(30)) spread_head();
    const std::int64_t least_of_first = embedding ? 2 : 1;
    if (num_stages - 1 + least_of_first <= num_layers && dice_.percent(30))
      case_.stages = space_.fixed.stages =
          draw_stages(dice_, num_layers, num_stages, least_of_first);
    if (dice_.percent(20))
      case_.stage_recompute = space_.fixed.stage_recompute =
          draw_words(dice_, num_stages, {"none", "selective", "full"});
    if (case_.precision == "fp32" && dice_.percent(90))
      case_.stage_dtype = space_.fixed.stage_dtype =
          draw_words(dice_, num_stages, {"fp32", "bf16"});
  }

  void spread_embedding() {
    space_.fixed.embedding = recipe::Embedding::kAllStages;
    layout_.spread_embedding = true;
  }

  void spread_head() {
    space_.fixed.head = recipe::Head::kAllStages;
    layout_.spread_head = true;
  }

  // A value that no rule objects to; one time in four the plainest such.
  bool set(const plan::Axis& axis) {
    std::vector<mesh::Layout> legal;
    for (const std::int64_t value : axis.values(layout_, space_)) {
      mesh::Layout layout = layout_;
      axis.set(layout, value, space_);
      if (passes(axis.name, layout)) legal.push_back(layout);
    }
    if (legal.empty()) return false;
    layout_ = dice_.percent(25) ? legal.front() : dice_.of(legal);
    return true;
  }

  bool passes(std::string_view axis, const mesh::Layout& layout) const {
    return std::ranges::all_of(plan::rules(), [&](const plan::Rule& rule) {
      // An order by hand is made once its sizes are known.
      const bool skips = case_.schedule == "random" && rule.check == plan::schedule_fits;
      return rule.after != axis || skips || !rule.check(layout, space_);
    });
  }

  Case with_layout() {
    Case one = case_;
    one.dp = layout_.dp;
    one.shard = layout_.shard;
    one.zero = layout_.zero;
    one.ring = layout_.cp / layout_.ulysses;
    one.ulysses = layout_.ulysses;
    one.tp = layout_.tp;
    one.ep = layout_.ep;
    one.etp = layout_.etp;
    one.pp = layout_.pp;
    one.num_virtual = layout_.num_virtual;
    one.spread_embedding = layout_.spread_embedding ? 1 : 0;
    one.spread_head = layout_.spread_head ? 1 : 0;
    one.micro_batch = layout_.micro_batch;
    one.recompute = recipe::to_string(layout_.recompute);
    one.offload = layout_.offload == recipe::Offload::kOptimizer ? "optimizer" : "none";
    one.prefetch = layout_.prefetch;
    one.window = layout_.shared_window;
    if (layout_.pp == 1) one.schedule = one.stages = "";
    return one;
  }

  Dice& dice_;
  Case case_;
  plan::Space space_;
  mesh::Layout layout_;
};

int draw_ranks(Dice& dice) { return dice.of({1, 2, 3, 4, 4, 4, 6, 8, 8, 8}); }

std::uint64_t key_of(std::uint64_t seed, std::int64_t problem, std::int64_t layout) {
  return packing::stream_key(seed, packing::Draw::kChoice, problem, layout);
}

// What the planner lets through and the compiler refuses is worth telling.
bool is_worth_running(const Case& one) {
  const Status legal = check(one);
  return legal || legal.error().code == ExitCode::kBug;
}

// The first of the problem's drafts that is a model.
Case problem_number(std::uint64_t seed, std::int64_t index) {
  Dice dice(key_of(seed, index, 0));
  Case problem = draw_problem(dice, index);
  while (!architecture_of(problem)) problem = draw_problem(dice, index);
  return problem;
}

}  // namespace

std::optional<Case> draw(std::uint64_t seed, std::int64_t index, int ranks) {
  constexpr int kPatience = 600, kOfOneWish = 60;
  static const std::vector<std::string> schedules = runnable_schedules();
  const std::int64_t number = index / kCasesOfProblem;
  const Case problem = problem_number(seed, number);
  const auto architecture = architecture_of(problem);
  Dice dice(key_of(seed, number, 1 + index % kCasesOfProblem));
  // Every second case is a pipeline, and each schedule has its turn; where it suits nothing,
  // another has.
  const bool is_pipeline = index % 2 == 0;
  std::string wish =
      is_pipeline ? schedules[static_cast<std::size_t>(index / 2) % schedules.size()] : "";
  int num_ranks = ranks > 0 ? ranks : draw_ranks(dice);
  for (int attempt = 1; attempt <= kPatience; ++attempt) {
    const auto one = Walk(dice, problem, *architecture).over(num_ranks, wish);
    if (one && is_worth_running(*one)) return one;
    if (attempt % kOfOneWish != 0) continue;
    if (is_pipeline) wish = dice.of(schedules);
    if (ranks == 0) num_ranks = draw_ranks(dice);
  }
  return std::nullopt;
}

}  // namespace ptrain::random
