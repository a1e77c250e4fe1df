#include "launcher/supervise/goodput.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "core/run/json_fields.h"
#include "launcher/supervise/event_fields.h"

namespace ptrain::supervise {

namespace {

// "2026-11-30T06:00:00.000Z" in seconds since 1970.
std::optional<double> seconds_of(const std::string& time) {
  std::tm parts{};
  double seconds = 0;
  if (std::sscanf(time.c_str(), "%d-%d-%dT%d:%d:%lfZ", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &seconds) != 6)
    return std::nullopt;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<double>(::timegm(&parts)) + seconds;
}

}  // namespace

void Goodput::step(std::int64_t step, double seconds) {
  while (!sums_.empty() && sums_.back().first >= step) sums_.pop_back();
  sums_.emplace_back(step, seconds + (sums_.empty() ? 0 : sums_.back().second));
}

double Goodput::trained_s(std::int64_t last_step) const {
  const auto after =
      std::ranges::upper_bound(sums_, last_step, {}, [](const auto& sum) { return sum.first; });
  return after == sums_.begin() ? 0 : std::prev(after)->second;
}

// What events were written by one process shows in when its clock began to count.
double held_s(std::span<const run::Event> events) {
  constexpr double kSame = 0.5;  // seconds
  double total = 0, start = 0, last = 0;
  for (const auto& event : events) {
    const auto time = seconds_of(event.time);
    if (!time || event.attempt < 1) continue;
    const double began = *time - event.mono_s;
    if (std::abs(began - start) > kSame) total += std::exchange(last, 0);
    start = began;
    last = std::max(last, event.mono_s);
  }
  return total + last;
}

double trained_s(std::string_view metrics, std::int64_t last_step) {
  double total = 0;
  while (!metrics.empty()) {
    const auto line = metrics.substr(0, metrics.find('\n'));
    metrics.remove_prefix(std::min(metrics.size(), line.size() + 1));
    const auto fields = run::parse_json(line, "metrics.jsonl");
    if (fields && integer_of(*fields, "step", last_step + 1) <= last_step)
      total += number_of(*fields, "step_s");
  }
  return total;
}

}  // namespace ptrain::supervise
