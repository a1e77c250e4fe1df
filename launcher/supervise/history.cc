#include "launcher/supervise/history.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/run/json_fields.h"
#include "launcher/supervise/event_fields.h"

namespace ptrain::supervise {

namespace {

using nlohmann::json;

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

}  // namespace

std::vector<std::string> without(const std::vector<std::string>& all,
                                 const std::vector<std::string>& some) {
  std::vector<std::string> out;
  for (const auto& one : all)
    if (!contains(some, one)) out.push_back(one);
  return out;
}

History history_of(std::span<const run::Event> events, const std::string& job) {
  History history;
  std::map<std::string, int> exclusions;
  for (const auto& event : events) {
    const json& fields = event.fields;
    const auto code = run::exit_code_from(static_cast<int>(integer_of(fields, "code", 0)));
    if (event.kind == run::EventKind::kAttemptEnded && code && is_failure(*code))
      history.failures.push_back({text_of(fields, "job"), *code,
                                  static_cast<int>(integer_of(fields, "rank", -1)),
                                  integer_of(fields, "step", 0),
                                  integer_of(fields, "checkpoint", -1), texts_of(fields, "nodes")});
    if (event.kind != run::EventKind::kDecision) continue;
    for (const auto& node : texts_of(fields, "exclude")) {
      if (++exclusions[node] == 2) history.offenders.push_back(node);
      if (text_of(fields, "job") == job && !contains(history.excluded, node))
        history.excluded.push_back(node);
    }
  }
  return history;
}

int num_failures_of(const History& history, const std::string& job) {
  return static_cast<int>(std::ranges::count(history.failures, job, &Failure::job));
}

std::vector<std::string> usable_nodes(const std::vector<std::string>& nodes, const History& history,
                                      int needed) {
  const auto left = without(nodes, history.excluded);
  auto better = without(left, history.offenders);
  return static_cast<int>(better.size()) >= needed ? better : left;
}

json to_fields(const run::Verdict& verdict, const Failure& failure) {
  json fields = run::to_json(verdict);
  // Of the whole run, which are known at its end only.
  fields.erase("held_s");
  fields.erase("trained_s");
  fields["job"] = failure.job;
  fields["checkpoint"] = failure.checkpoint;
  return fields;
}

json to_fields(const Decision& decision, const std::string& job) {
  return {{"code", static_cast<int>(decision.code)},
          {"next", decision.next},
          {"wait_s", run::number(decision.wait_s)},
          {"exclude", decision.exclude},
          {"job", job}};
}

}  // namespace ptrain::supervise
