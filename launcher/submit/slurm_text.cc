#include "launcher/submit/slurm_text.h"

#include <algorithm>
#include <charconv>
#include <ranges>

#include "launcher/cluster/slurm_command.h"

namespace ptrain::submit {

namespace {

using cluster::value_of;

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return {};
  return value;
}

int number_or(std::string_view text, int otherwise) {
  return static_cast<int>(number(text).value_or(otherwise));
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (;;) {
    const auto end = text.find(separator);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> lines_with(std::string_view text, std::string_view beginning) {
  auto lines = cluster::lines_of(text);
  std::erase_if(lines, [&](std::string_view line) { return !line.starts_with(beginning); });
  return lines;
}

// "NodeName=node1 ...": the name of what a line is about.
std::string name_of(std::string_view line) {
  line.remove_prefix(line.find('=') + 1);
  return std::string(line.substr(0, line.find(' ')));
}

}  // namespace

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> out;
  if (list == "(null)") return out;
  for (const auto word : parts_of(list, ','))
    if (!word.empty()) out.emplace_back(word);
  return out;
}

std::optional<std::chrono::seconds> time_limit(std::string_view text) {
  using std::chrono::seconds;
  if (text == "UNLIMITED" || text == "INFINITE") return seconds::max();
  std::int64_t days = 0;
  const auto dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto before = number(text.substr(0, dash));
    if (!before) return {};
    days = *before;
    text.remove_prefix(dash + 1);
  }
  std::vector<std::int64_t> fields;
  for (const auto part : parts_of(text, ':')) {
    const auto value = number(part);
    if (!value || *value > 1'000'000'000) return {};
    fields.push_back(*value);
  }
  if (fields.size() > 3 || days > 1'000'000) return {};
  // Without days a single number is minutes and two are minutes and seconds; after days the first
  // is hours.
  if (dash == std::string_view::npos && fields.size() < 3) fields.insert(fields.begin(), 0);
  fields.resize(3, 0);
  return seconds(((days * 24 + fields[0]) * 60 + fields[1]) * 60 + fields[2]);
}

std::vector<Partition> partitions(std::string_view text) {
  std::vector<Partition> out;
  for (const auto line : lines_with(text, "PartitionName=")) {
    Partition one;
    one.name = name_of(line);
    one.is_default = value_of(line, "Default") == "YES";
    one.is_up = value_of(line, "State") == "UP";
    one.num_nodes = number_or(value_of(line, "TotalNodes"), 0);
    one.most_nodes = number_or(value_of(line, "MaxNodes"), 0);  // UNLIMITED
    one.longest = value_of(line, "MaxTime");
    if (const auto accounts = value_of(line, "AllowAccounts"); accounts != "ALL")
      one.accounts = words_of(accounts);
    out.push_back(std::move(one));
  }
  return out;
}

NodeState node_state(std::string_view words) {
  const bool silent = words.find('*') != std::string_view::npos;  // does not respond
  const auto parts = parts_of(words.substr(0, words.find('*')), '+');
  const auto says = [&](std::initializer_list<std::string_view> states) {
    return std::ranges::any_of(parts, [&](std::string_view part) {
      return std::ranges::find(states, part) != states.end();
    });
  };
  if (silent || says({"DOWN", "FAIL", "FAILING", "ERROR", "NOT_RESPONDING", "UNKNOWN", "FUTURE",
                      "INVALID_REG"}))
    return NodeState::kDown;
  if (says({"DRAIN", "DRAINING", "DRAINED"})) return NodeState::kDrained;
  const bool kept = says({"RESERVED", "MAINTENANCE", "MAINT", "BLOCKED", "COMPLETING"});
  return says({"IDLE"}) && !kept ? NodeState::kIdle : NodeState::kBusy;
}

bool is_usable(const NodeLine& node) {
  return node.state == NodeState::kIdle || node.state == NodeState::kBusy;
}

std::vector<NodeLine> node_lines(std::string_view text) {
  constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
  std::vector<NodeLine> out;
  for (const auto line : lines_with(text, "NodeName=")) {
    NodeLine one;
    one.name = name_of(line);
    one.threads_per_core = std::max(1, number_or(value_of(line, "ThreadsPerCore"), 1));
    one.cores = std::max(1, number_or(value_of(line, "CPUTot"), 1) / one.threads_per_core);
    const auto mebibytes = number(value_of(line, "RealMemory")).value_or(0);
    if (mebibytes > 1) one.memory_bytes = mebibytes * kMebibyte;  // 1: Slurm's default
    one.features = words_of(value_of(line, "AvailableFeatures"));
    one.partitions = words_of(value_of(line, "Partitions"));
    one.state = node_state(value_of(line, "State"));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace ptrain::submit
