#include "launcher/plan/cost/action_cost.h"

#include "launcher/plan/cost/compute.h"
#include "launcher/plan/cost/disk.h"
#include "launcher/plan/cost/network.h"

namespace ptrain::plan {

namespace {

using program::Kind;

using Cost = double (*)(const program::Action&, const CostContext&);
constexpr Cost kCosts[] = {compute_seconds, network_seconds, disk_seconds};

}  // namespace

std::string_view to_string(Term term) {
  switch (term) {
    case Term::kForward:
      return "forward";
    case Term::kBackward:
      return "backward";
    case Term::kRecompute:
      return "recompute";
    case Term::kGather:
      return "gather";
    case Term::kReduce:
      return "reduce";
    case Term::kOptimizer:
      return "optimizer";
    case Term::kOffload:
      return "offload";
    case Term::kExchange:
      return "exchange";
  }
  return "";
}

Term term_of(Kind kind) {
  switch (kind) {
    case Kind::kForward:
      return Term::kForward;
    case Kind::kRecompute:
      return Term::kRecompute;
    case Kind::kUnshard:
    case Kind::kReshard:
      return Term::kGather;
    case Kind::kReduceGrad:
    case Kind::kSyncTied:
      return Term::kReduce;
    case Kind::kGradNorm:
    case Kind::kOptimizer:
      return Term::kOptimizer;
    case Kind::kFetch:
    case Kind::kOffload:
      return Term::kOffload;
    case Kind::kExchange:
      return Term::kExchange;
    default:
      return Term::kBackward;
  }
}

double action_seconds(const program::Action& action, const CostContext& context) {
  double seconds = 0;
  for (const Cost cost : kCosts) seconds += cost(action, context);
  return seconds;
}

}  // namespace ptrain::plan
