#include "launcher/supervise/rank_board.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/run/json_fields.h"
#include "launcher/base/file.h"
#include "launcher/supervise/narrate.h"

namespace ptrain::supervise {

namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

nlohmann::json to_json(int rank, const LastHeard& state, double now) {
  return {{"rank", rank},
          {"step", state.step},
          {"phase", state.phase},
          {"collective", state.collective},
          {"waiting", state.waiting},
          {"resident_bytes", state.resident_bytes},
          {"silent_s", now - state.heard_at},
          {"ended", state.gone || state.said_goodbye}};
}

}  // namespace

Status write_rank_board(const std::string& path, std::span<const LastHeard> ranks, double now) {
  nlohmann::json board = nlohmann::json::array();
  for (std::size_t i = 0; i < ranks.size(); ++i)
    board.push_back(to_json(static_cast<int>(i), ranks[i], now));
  return publish_file(path, run::dump_line(board), Lasts::kUntilPowerFails);
}

nlohmann::json read_rank_board(const std::string& path) {
  const auto board = read_file(path, kMostBytes).and_then([&](const std::string& text) {
    return run::parse_json(text, path);
  });
  return board && board->is_array() ? *board : nlohmann::json();
}

std::string rank_line(const nlohmann::json& rank) {
  int number = 0;
  std::int64_t step = 0, bytes = 0;
  std::string phase, collective;
  bool waiting = false;
  double silent_s = 0;
  const Status read = run::FieldReader(rank, "ranks.json")
                          .get("rank", number)
                          .get("step", step)
                          .get("phase", phase)
                          .get("collective", collective)
                          .get("waiting", waiting)
                          .get("resident_bytes", bytes)
                          .get("silent_s", silent_s)
                          .status();
  if (!read) return read.error().message;
  return fmt::format("rank {}: step {}, {}, {} {}, {}, heard {:.1f} s ago", number, step, phase,
                     waiting ? "waits in" : "last collective",
                     collective.empty() ? "none" : collective,
                     short_bytes(static_cast<double>(bytes)), silent_s);
}

}  // namespace ptrain::supervise
