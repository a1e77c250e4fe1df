#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/program/segments.h"

namespace ptrain::program {

// Part of RankCheck: a layer's call is cut where its code needs other ranks, and nowhere else, and
// the exchange between two segments is the one that it needs.
class SegmentCheck {
 public:
  using Broken = std::optional<std::string>;

  explicit SegmentCheck(const model::Architecture& architecture) : architecture_(architecture) {}
  // Of an action that works on a layer, or an EXCHANGE of one; in order.
  Broken segment(const Action& action);
  Broken exchange(const Action& action);
  Broken end() const;

 private:
  struct Call {
    Kind kind = Kind::kForward;
    std::vector<model::ExchangeSpec> exchanges;
    int at = 0;  // the last segment that ran
    bool exchanged = false;
  };
  Broken follows(const Action& action, const Call& call) const;

  const model::Architecture& architecture_;
  std::map<std::pair<int, int>, Call> open_;  // by (layer, micro-batch)
};

}  // namespace ptrain::program
