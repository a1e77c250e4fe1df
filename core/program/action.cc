#include "core/program/action.h"

#include <algorithm>

namespace ptrain::program {

std::string_view Action::attribute(std::string_view key) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const auto& attribute) { return attribute.first == key; });
  return found == attributes.end() ? std::string_view() : std::string_view(found->second);
}

std::string_view to_string(Lane lane) {
  switch (lane) {
    case Lane::kCompute:
      return "compute";
    case Lane::kGather:
      return "gather";
    case Lane::kReduce:
      return "reduce";
    case Lane::kTransfer:
      return "transfer";
    case Lane::kCopyOut:
      return "copy_out";
    case Lane::kCopyIn:
      return "copy_in";
  }
  return "";
}

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kForward:
      return "FORWARD";
    case Kind::kBackward:
      return "BACKWARD";
    case Kind::kBackwardInput:
      return "BACKWARD_INPUT";
    case Kind::kBackwardWeight:
      return "BACKWARD_WEIGHT";
    case Kind::kRecompute:
      return "RECOMPUTE";
    case Kind::kUnshard:
      return "UNSHARD";
    case Kind::kReshard:
      return "RESHARD";
    case Kind::kReduceGrad:
      return "REDUCE_GRAD";
    case Kind::kSyncTied:
      return "SYNC_TIED";
    case Kind::kSendForward:
      return "SEND_F";
    case Kind::kReceiveForward:
      return "RECV_F";
    case Kind::kSendBackward:
      return "SEND_B";
    case Kind::kReceiveBackward:
      return "RECV_B";
    case Kind::kExchange:
      return "EXCHANGE";
    case Kind::kOffload:
      return "OFFLOAD";
    case Kind::kFetch:
      return "FETCH";
    case Kind::kGradNorm:
      return "GRAD_NORM";
    case Kind::kOptimizer:
      return "OPTIMIZER";
  }
  return "";
}

}  // namespace ptrain::program
