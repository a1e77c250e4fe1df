#include "core/program/segment_check.h"

#include <fmt/format.h>

namespace ptrain::program {

SegmentCheck::Broken SegmentCheck::segment(const Action& action) {
  auto exchanges = exchanges_of(action, architecture_);
  const std::pair key{action.layer_first, action.micro_batch};
  const auto open = open_.find(key);
  if (exchanges.empty()) {
    if (action.segment >= 0) return "the layer's code has no segments";
    if (open != open_.end()) return "the call before it is not finished";
    return std::nullopt;
  }
  if (action.segment < 0) return "the layer's code runs in segments";
  if (action.segment == 0) {
    if (open != open_.end()) return "the call before it is not finished";
    open_[key] = {action.kind, std::move(exchanges)};
    return std::nullopt;
  }
  if (open == open_.end()) return "the segment before it did not run";
  if (auto broken = follows(action, open->second)) return broken;
  open->second.at += 1;
  open->second.exchanged = false;
  if (action.segment == static_cast<int>(exchanges.size())) open_.erase(open);
  return std::nullopt;
}

SegmentCheck::Broken SegmentCheck::follows(const Action& action, const Call& call) const {
  if (action.kind != call.kind)
    return fmt::format("a {} of this layer is under way", to_string(call.kind));
  if (action.segment != call.at + 1) return fmt::format("segment {} ran last", call.at);
  if (!call.exchanged) return "the exchange before it is missing";
  return std::nullopt;
}

SegmentCheck::Broken SegmentCheck::exchange(const Action& action) {
  const auto open = open_.find({action.layer_first, action.micro_batch});
  if (open == open_.end()) return "no call of this layer is under way";
  Call& call = open->second;
  if (action.segment != call.at || call.exchanged) return "comes at the wrong segment";
  const model::ExchangeSpec& needed = call.exchanges[static_cast<std::size_t>(call.at)];
  if (action.attribute("kind") != to_string(needed.kind) ||
      action.attribute("axis") != to_string(needed.axis))
    return fmt::format("the layer's code needs {} over {}", to_string(needed.kind),
                       to_string(needed.axis));
  call.exchanged = true;
  return std::nullopt;
}

SegmentCheck::Broken SegmentCheck::end() const {
  if (open_.empty()) return std::nullopt;
  const auto& [key, call] = *open_.begin();
  return fmt::format("{} l{} m{} ends at segment {}", to_string(call.kind), key.first, key.second,
                     call.at);
}

}  // namespace ptrain::program
