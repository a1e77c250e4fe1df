#include "cli/seats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "cli/commands.h"
#include "cli/engine_module.h"
#include "cli/output.h"
#include "core/run/json_fields.h"
#include "launcher/base/subprocess.h"
#include "launcher/preflight/node_check.h"
#include "launcher/start/choose.h"
#include "launcher/start/network.h"
#include "launcher/start/seat.h"
#include "launcher/submit/rank_map.h"
#include "launcher/supervise/places.h"

namespace ptrain::cli {

namespace {

constexpr std::chrono::seconds kLimit{10};

int threads_of(const run::Plan& plan) {
  return plan.shapes.empty() ? 1 : plan.shapes.front().threads;
}

// What the places of this machine are, in words.
std::vector<std::string> texts_of_seats_here(const SeatsArguments& wanted) {
  std::vector<start::Place> places;
  for (int slot = 0; slot < wanted.slots; ++slot)
    places.push_back({slot, wanted.threads, wanted.gpus ? slot : -1});
  std::vector<std::string> texts;
  for (const auto& seat : start::seats_here(places)) texts.push_back(start::to_text(seat));
  return texts;
}

// One step on each node; what its places are there.
submit::Seats seats_on(const std::vector<std::string>& nodes, const SeatsArguments& wanted) {
  submit::Seats seats;
  base::Command command = start::on_each_node(nodes);
  command.arguments.insert(command.arguments.end(), {own_path().value_or("ptrain"), "seats",
                                                     "--slots", std::to_string(wanted.slots),
                                                     "--threads", std::to_string(wanted.threads)});
  if (wanted.gpus) command.arguments.emplace_back("--gpus");
  const auto done = base::run_to_end(command, kLimit);
  std::istringstream lines(done ? done->output : "");
  for (std::string line; std::getline(lines, line);) {
    const auto json = run::parse_json(line, "the seats of a node", 4);
    if (!json || !json->is_object()) continue;  // another program's words
    auto& texts = seats[json->value("node", "")];
    for (const auto& text : json->value("seats", nlohmann::json::array()))
      texts.push_back(text.get<std::string>());
  }
  return seats;
}

}  // namespace

void take_seat(const run::Plan& plan, int rank, const std::string& control_host) {
  const auto found = std::ranges::find(plan.ranks, rank, &run::RankPlace::rank);
  if (found == plan.ranks.end()) return;
  std::string interface;
  if (run::num_nodes(plan) > 1)
    interface = start::address_towards(control_host).transform(start::interface_of).value_or("");
  if (interface.empty() && found->gpu < 0) return;
  const auto seat = start::seat_here({found->slot, threads_of(plan), found->gpu});
  std::string text = start::to_text(seat);
  for (const auto& [name, value] : start::set_variables(start::variables_of(seat, interface)))
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  if (!text.empty()) say(fmt::format("on {}: {}", preflight::node_name(), text));
}

std::string seat_map(const run::Plan& plan) {
  SeatsArguments wanted{submit::ranks_per_node(plan), threads_of(plan), plan.ranks[0].gpu >= 0};
  if (const auto allocation = start::usable_allocation()) {
    const auto names = cluster::allocated_nodes(*allocation);
    const auto placed = names ? submit::with_nodes(plan, *names) : plan;
    return submit::rank_map(placed, seats_on(supervise::nodes_of(placed), wanted));
  }
  const auto nodes = supervise::nodes_of(plan);
  submit::Seats seats;
  if (nodes.size() == 1) seats[nodes[0]] = texts_of_seats_here(wanted);
  return submit::rank_map(plan, seats);
}

Result<ExitCode> cmd_seats(const SeatsArguments& arguments) {
  print(run::dump_line(
      {{"node", preflight::node_name()}, {"seats", texts_of_seats_here(arguments)}}));
  return ExitCode::kDone;
}

}  // namespace ptrain::cli
