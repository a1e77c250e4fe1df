#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/run/control.h"
#include "core/run/plan.h"

namespace ptrain::supervise {

// What a run measured of each shape, to be shown beside what its plan predicted.
class Measurements {
 public:
  void step(const run::StepDone& done);
  void shape_finished(const nlohmann::json& fields);  // of that event

  // A small table a shape, in the order they ran; none for a shape without a step.
  std::vector<std::string> beside(const run::Plan& plan) const;

 private:
  struct OfShape {
    std::string name;
    std::vector<double> step_s, tokens_per_s;  // of the last kMostSteps
    std::int64_t resident_bytes = 0;
    nlohmann::json bytes = nlohmann::json::object();  // rank 0's peaks by class
  };
  OfShape& of(const std::string& name);

  std::vector<OfShape> shapes_;
};

}  // namespace ptrain::supervise
