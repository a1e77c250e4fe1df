#include "launcher/supervise/post_mortem.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "launcher/base/file.h"
#include "launcher/cluster/slurm_command.h"
#include "launcher/supervise/narrate.h"
#include "launcher/supervise/rank_board.h"
#include "launcher/supervise/report.h"
#include "launcher/supervise/secrets.h"

namespace ptrain::supervise {

namespace {

constexpr std::size_t kMostEvents = 60, kMostLines = 40, kMostRanks = 64;
constexpr std::chrono::seconds kPatience{2};

void add(std::string& text, const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  text += fmt::format("== {}\n", title);
  for (const auto& line : lines) text += line + "\n";
  text += "\n";
}

// The one that failed, then the others while there is room.
std::vector<int> ranks_of_interest(const run::Plan& plan, int failed) {
  std::vector<int> ranks;
  if (failed >= 0) ranks.push_back(failed);
  for (const auto& place : plan.ranks)
    if (place.rank != failed && ranks.size() < kMostRanks) ranks.push_back(place.rank);
  return ranks;
}

std::vector<std::string> last_words(const run::Directory& directory, int attempt) {
  std::vector<std::string> lines;
  for (const auto& rank : read_rank_board(directory.rank_board(attempt)))
    lines.push_back(rank_line(rank));
  return lines;
}

std::vector<std::string> places_of(const run::Plan& plan) {
  std::vector<std::string> lines{"layouts: " + layouts_text(plan)};
  for (const auto& place : plan.ranks)
    if (lines.size() <= kMostRanks)
      lines.push_back(fmt::format("rank {}: {} slot {}", place.rank, place.node, place.slot));
  return lines;
}

}  // namespace

std::string post_mortem(const run::Directory& directory, const run::Plan& plan,
                        const run::Verdict& verdict, const std::string& slurm_facts) {
  std::string text;
  add(text, "verdict", {verdict_line(verdict), run::to_json(verdict).dump()});
  add(text, "what each rank said last", last_words(directory, verdict.attempt));
  add(text, "plan", places_of(plan));
  if (!slurm_facts.empty()) add(text, "Slurm", {slurm_facts});
  add(text, "the last events", tail_of(directory.events(), kMostEvents));
  add(text, "what started the ranks", tail_of(directory.launcher_log(verdict.attempt), kMostLines));
  for (const int rank : ranks_of_interest(plan, verdict.rank))
    add(text, fmt::format("log of rank {}", rank),
        tail_of(directory.rank_log(verdict.attempt, rank), kMostLines));
  return without_secrets(std::move(text), secrets_in(own_environment()));
}

std::string slurm_facts(const std::string& job) {
  if (job.empty()) return "";
  return cluster::ask_slurm({"scontrol", "show", "job", job}, kPatience).value_or("");
}

}  // namespace ptrain::supervise
