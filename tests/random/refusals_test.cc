// What a recipe may fix the planner plans as it is, or refuses before anything starts, with the
// condition that is broken and the nearest value that would do.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/random/draw.h"
#include "tests/random/experiment.h"
#include "tests/random/planned.h"
#include "tests/support/small_model.h"

namespace ptrain::random {
namespace {

constexpr std::uint64_t kSeed = 2;
constexpr std::int64_t kCases = 33, kBroken = 15;

using Words = std::vector<std::string>;

// Makes a legal case break one condition and says what the error must name; nothing where the case
// has nothing to break.
struct Break {
  const char* name;
  std::optional<Words> (*apply)(Case&);
};

bool is_dense(const Case& one) { return !support::has_experts(one.family); }

bool sees_elements(const Case& one) {
  return one.optimizer != "muon" && one.optimizer != "adam8bit";
}

// Of two as near the smaller one.
std::int64_t nearest(std::int64_t degree, const std::function<bool(std::int64_t)>& fits) {
  for (std::int64_t distance = 1; distance < degree; ++distance)
    for (const std::int64_t other : {degree - distance, degree + distance})
      if (fits(other)) return other;
  return 1;
}

bool shares(std::int64_t count, std::int64_t degree) {
  return count % degree == 0 || degree % count == 0;
}

std::optional<Words> tp_of_heads(Case& one) {
  if (!is_dense(one)) return std::nullopt;
  one.tp = 5;
  const std::int64_t kv_heads = one.family == "gpt2" ? one.heads : one.kv_heads;
  const auto tp = nearest(5, [&](std::int64_t degree) {
    return one.heads % degree == 0 && one.vocab % degree == 0 && one.ffn % degree == 0 &&
           shares(kv_heads, degree);
  });
  return Words{"tp is 5, which does not divide", fmt::format("the nearest that does is tp {}", tp)};
}

std::optional<Words> ulysses_of_heads(Case& one) {
  one.ulysses = 2 * one.heads / one.tp;
  if (!is_dense(one) || one.sequence % (one.ring * one.ulysses) != 0) return std::nullopt;
  return Words{fmt::format("cp.ulysses is {}, which does not divide", one.ulysses),
               fmt::format("the nearest that does is cp.ulysses {}", one.heads / one.tp)};
}

std::optional<Words> ring_of_tokens(Case& one) {
  one.ring = 5;
  const std::int64_t degree = one.ring * one.ulysses;
  const auto cp = nearest(degree, [&](std::int64_t other) { return one.sequence % other == 0; });
  return Words{fmt::format("{} tokens over ring x ulysses {}", one.sequence, degree),
               fmt::format("the nearest that divides is {}", cp)};
}

std::optional<Words> tp_of_tokens(Case& one) {
  if (!is_dense(one) || !sees_elements(one) || one.heads % 4 != 0 || one.vocab % 4 != 0)
    return std::nullopt;
  one.tp = 4;
  one.ring = one.ulysses = one.micro_batch = 1;
  one.sequence = 6;
  return Words{"6 tokens over tp 4; the nearest that divides is tp 2"};
}

std::optional<Words> tp_of_whole_matrices(Case& one) {
  if (!is_dense(one) || one.vocab % 2 != 0 || !shares(one.kv_heads, 2)) return std::nullopt;
  one.tp = 2;
  one.optimizer = "muon";
  return Words{"its optimizer must see the matrix whole", "adamw"};
}

std::optional<Words> rows_over_ranks(Case& one) {
  one.dp = 5;
  return Words{fmt::format("{} rows over {} ranks", one.rows, one.dp * one.shard),
               "change global_batch_tokens"};
}

std::optional<Words> rows_of_a_micro_batch(Case& one) {
  one.micro_batch = one.rows + 1;
  return Words{fmt::format("micro_batch is fixed at {}", one.rows + 1)};
}

// Two stages a rank of a pipeline of few enough ranks.
bool has_pipeline(Case& one) {
  if (one.pp < 2 || 2 * one.pp > one.layers + 2 - one.spread_embedding) return false;
  one.num_virtual = 2;
  one.stages.clear();  // both name stages
  one.stage_recompute.clear();
  one.stage_dtype.clear();
  return true;
}

std::optional<Words> few_micro_batches(Case& one) {
  one.micro_batch = one.rows / (one.dp * one.shard);
  if (!has_pipeline(one)) return std::nullopt;
  one.schedule = "dualpipe_v";
  return Words{"dualpipe_v", fmt::format("{} micro-batches", 2 * one.pp)};
}

std::optional<Words> stages_of_a_schedule(Case& one) {
  if (!has_pipeline(one)) return std::nullopt;
  one.schedule = "zb_v";
  one.num_virtual = 1;
  return Words{"zb_v", "2 virtual stages a rank"};
}

std::optional<Words> copies_of_weights(Case& one) {
  if (!has_pipeline(one)) return std::nullopt;
  one.schedule = "dualpipe";
  return Words{"dualpipe", "twice"};
}

std::optional<Words> no_such_schedule(Case& one) {
  if (one.pp < 2) return std::nullopt;
  one.schedule = "1f2b";
  return Words{"there is no schedule '1f2b'", "`ptrain schedule --list` shows them"};
}

std::optional<Words> layers_of_stages(Case& one) {
  if (one.pp < 2) return std::nullopt;
  one.stages = "1,1";
  return Words{fmt::format("give {} counts that add up to {}", one.num_stages(), one.layers + 2)};
}

std::optional<Words> more_stages_than_layers(Case& one) {
  if (one.pp < 2) return std::nullopt;
  one.schedule = "interleaved_1f1b";
  one.num_virtual = one.layers + 3;
  one.stages.clear();
  return Words{
      fmt::format("pp x virtual may be {} at most", one.layers + 2 - one.spread_embedding)};
}

// A degree that divides `count` and the ranks of a stage.
std::int64_t nearest_of_stage(const Case& one, std::int64_t degree, std::int64_t count) {
  const std::int64_t ranks = one.dp * one.shard * one.ring * one.ulysses * one.tp;
  return nearest(degree,
                 [&](std::int64_t other) { return count % other == 0 && ranks % other == 0; });
}

std::optional<Words> ep_of_experts(Case& one) {
  if (is_dense(one)) return std::nullopt;
  one.etp = 1;
  one.ep = one.experts + 1;
  const auto ep = nearest_of_stage(one, one.ep, one.experts);
  return Words{fmt::format("ep is {}, which does not divide {} experts", one.ep, one.experts),
               fmt::format("the nearest that does is ep {}", ep)};
}

std::optional<Words> etp_of_columns(Case& one) {
  if (is_dense(one)) return std::nullopt;
  const std::int64_t columns = one.family == "mixtral" ? one.ffn : one.expert_ffn;
  one.ep = 1;
  one.etp = columns + 1;
  return Words{
      fmt::format("etp is {}, which does not divide {} columns of an expert", one.etp, columns),
      fmt::format("the nearest that does is etp {}", nearest_of_stage(one, one.etp, columns))};
}

std::optional<Words> ep_of_none(Case& one) {
  if (!is_dense(one)) return std::nullopt;
  one.ep = 2;
  return Words{"ep is 2 and etp 1, but the model has no experts", "set ep and etp to 1"};
}

constexpr Break kBreaks[] = {
    {"tp of heads", tp_of_heads},
    {"ulysses of heads", ulysses_of_heads},
    {"ring of tokens", ring_of_tokens},
    {"tp of tokens", tp_of_tokens},
    {"tp of whole matrices", tp_of_whole_matrices},
    {"rows over ranks", rows_over_ranks},
    {"rows of a micro-batch", rows_of_a_micro_batch},
    {"few micro-batches", few_micro_batches},
    {"stages of a schedule", stages_of_a_schedule},
    {"copies of weights", copies_of_weights},
    {"no such schedule", no_such_schedule},
    {"layers of stages", layers_of_stages},
    {"more stages than layers", more_stages_than_layers},
    {"ep of experts", ep_of_experts},
    {"etp of columns", etp_of_columns},
    {"ep of none", ep_of_none},
};

// As users see it: message, then what to do.
std::string text_of(const Error& error) { return error.message + "\n" + error.hint; }

TEST(Random, RecipesArePlannedAsTheyAre) {
  for (std::int64_t i = 0; i < kCases; ++i) {
    const auto one = draw(kSeed, kCasesOfProblem * i);
    if (!one || one->schedule == "random") continue;
    const auto planning = planned(*one);
    ASSERT_TRUE(planning) << to_text(*one) << "\n" << text_of(planning.error());
    const auto architecture = architecture_of(*one);
    mesh::Layout wanted = *layout_of(*one, *architecture);
    mesh::Layout found = planning->plan.shapes.front().layout;
    wanted.shared_window = found.shared_window;  // the machine says
    if (!wanted.gathers_each_use()) wanted.prefetch = found.prefetch;
    EXPECT_EQ(found, wanted) << to_text(*one) << "\n" << mesh::to_string(found);
  }
}

TEST(Random, OneBrokenConditionIsNamedWithTheNearest) {
  std::map<std::string, int> tried;
  for (std::int64_t i = 0; i < kBroken; ++i) {
    const auto one = draw(kSeed, kCasesOfProblem * i);
    if (!one || one->schedule == "random") continue;
    for (const Break& broken : kBreaks) {
      Case illegal = *one;
      const auto words = broken.apply(illegal);
      if (!words) continue;
      tried[broken.name] += 1;
      const auto planning = planned(illegal);
      ASSERT_FALSE(planning) << broken.name << ": " << to_text(illegal);
      const Error& error = planning.error();
      EXPECT_TRUE(error.code == ExitCode::kUsage || error.code == ExitCode::kNothingFits)
          << broken.name << ": " << to_text(illegal) << "\n"
          << text_of(error);
      for (const std::string& word : *words)
        EXPECT_NE(text_of(error).find(word), std::string::npos)
            << broken.name << ": " << to_text(illegal) << " lacks '" << word << "' in\n"
            << text_of(error);
    }
  }
  for (const Break& broken : kBreaks) EXPECT_GE(tried[broken.name], 1) << broken.name;
}

struct File {
  const char* csv;
  std::string words;
};

// Two ranks, two micro-batches each.
TEST(Random, SchedulesOfFilesAreRefused) {
  Case one;
  one.layers = 2;
  one.pp = 2;
  one.micro_batch = 2;
  one.schedule = "own.csv";
  const File files[] = {
      {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n", "rank 1, cell 3 (1F1): there is no 1B1 for it"},
      {"0F0,0F1,0B0,0B1\n2F0,2B0,2F1,2B1\n", "no rank works on stage 1"},
      {"0F0,0F1,0B0,0B1\n0F0,1F0,1F1,1B0,1B1\n", "stage 0 is on rank 1 too"},
      {"0F0,0B0\n1F0,1B0\n", "the schedule's file has 1 micro-batches, but a step 2 of each rank"},
      {"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", "the schedule hangs: rank 0 at 0B0"},
      {"0F0,1F0,1B0,0B0,0F1,1F1,1B1,0B1\n", "the schedule's file has 1 ranks and 2 stages"},
  };
  for (const File& file : files) {
    const auto planning = planned(one, {{"own.csv", file.csv}});
    ASSERT_FALSE(planning) << file.csv;
    EXPECT_NE(text_of(planning.error()).find(file.words), std::string::npos)
        << file.csv << text_of(planning.error());
  }
}

}  // namespace
}  // namespace ptrain::random
