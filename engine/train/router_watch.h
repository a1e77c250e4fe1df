#pragma once

#include <optional>
#include <string>

#include "engine/execute/router_report.h"

namespace ptrain::train {

// Notices experts that learn nothing: that no token of many steps on end passed, or whose tokens
// are dropped.
class RouterWatch {
 public:
  // After every step: what to warn of, once.
  std::optional<std::string> step(const execute::RouterReport& report);

 private:
  int idle_steps_ = 0, dropping_steps_ = 0;
  bool told_idle_ = false, told_dropping_ = false;
};

}  // namespace ptrain::train
