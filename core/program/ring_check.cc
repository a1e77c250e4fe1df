#include "core/program/ring_check.h"

#include <fmt/format.h>

#include "core/program/offload_plan.h"

namespace ptrain::program {
namespace {

int at(const RingCheck::Clock& clock, Lane lane) { return clock[static_cast<std::size_t>(lane)]; }

}  // namespace

RingCheck::RingCheck(const model::Architecture& architecture, const mesh::Layout& layout)
    : is_on_(layout.offload == recipe::Offload::kOptimizer),
      buffers_(ring_buffers(architecture)),
      groups_(buffers_.size()),
      ring_(kRingBuffers) {}

RingCheck::Broken RingCheck::well_formed(const Action& action) const {
  if (!is_on_) return "nothing is offloaded in this layout";
  const int buffer = buffer_of(action.group);
  if (buffer < 0) return fmt::format("g{} keeps no state", action.group);
  if (action.attribute("buffer") != std::to_string(buffer))
    return fmt::format("the buffer of g{} is {}", action.group, buffer);
  return std::nullopt;
}

RingCheck::Broken RingCheck::fetch(const Action& action, const Clock& now) {
  if (auto broken = well_formed(action)) return broken;
  Buffer& place = buffer(action);
  if (place.group >= 0) return fmt::format("the state of g{} is in its buffer", place.group);
  if (place.offloaded > at(now, Lane::kCopyOut)) return "does not wait for the OFFLOAD before it";
  if (group(action).stage != Stage::kAway) return "a second fetch";
  place.group = action.group;
  group(action).stage = Stage::kFetched;
  group(action).fetched = at(now, Lane::kCopyIn);
  return std::nullopt;
}

RingCheck::Broken RingCheck::update(const Action& action, const Clock& now) {
  if (!is_on_ || buffer_of(action.group) < 0) return std::nullopt;
  Group& updated = group(action);
  if (updated.stage != Stage::kFetched)
    return fmt::format("the state of g{} is not fetched", action.group);
  if (updated.fetched > at(now, Lane::kCopyIn)) return "does not wait for its FETCH";
  updated.stage = Stage::kUpdated;
  updated.updated = at(now, Lane::kCompute);
  return std::nullopt;
}

RingCheck::Broken RingCheck::offload(const Action& action, const Clock& now) {
  if (auto broken = well_formed(action)) return broken;
  Group& leaving = group(action);
  if (leaving.stage != Stage::kUpdated)
    return fmt::format("the state of g{} is not updated in its buffer", action.group);
  if (leaving.updated > at(now, Lane::kCompute)) return "does not wait for its OPTIMIZER";
  leaving.stage = Stage::kOffloaded;
  buffer(action) = {-1, at(now, Lane::kCopyOut)};
  return std::nullopt;
}

RingCheck::Broken RingCheck::end() const {
  for (std::size_t i = 0; is_on_ && i < groups_.size(); ++i)
    if (buffers_[i] >= 0 && groups_[i].stage != Stage::kOffloaded)
      return fmt::format("the state of g{} is never offloaded", i);
  return std::nullopt;
}

}  // namespace ptrain::program
