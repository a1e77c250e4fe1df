#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace ptrain::program {

enum class Lane : std::uint8_t { kCompute, kGather, kReduce, kTransfer, kCopyOut, kCopyIn };

enum class Kind : std::uint8_t {
  kForward,
  kBackward,
  kBackwardInput,
  kBackwardWeight,
  kRecompute,
  kUnshard,
  kReshard,
  kReduceGrad,
  kSyncTied,
  kSendForward,
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
  kExchange,
  kOffload,
  kFetch,
  kGradNorm,
  kOptimizer,
};

// One line of a program. Fields that do not apply are -1. Text form (to_text):
//   ID LANE KIND [gGROUP] [sSTAGE] [lA-B[.SEGMENT]] [mMB[.SLICE]] [*COPY] [key=value ...] [< ID
//   ...]
struct Action {
  int id = 0;
  Lane lane = Lane::kCompute;
  Kind kind = Kind::kForward;
  int group = -1;
  int stage = -1;
  int layer_first = -1;
  int layer_last = -1;
  int segment = -1;
  int micro_batch = -1;
  int slice = -1;
  int copy = -1;
  std::vector<std::pair<std::string, std::string>> attributes;  // in order of writing
  std::vector<int> after;                                       // ids that must be finished first

  // The value of `key`, or empty.
  std::string_view attribute(std::string_view key) const;
  bool operator==(const Action&) const = default;
};

// The whole work of one rank in one step.
struct Program {
  int rank = 0;
  int num_ranks = 1;
  std::string shape;
  std::vector<Action> actions;  // ids are positions; each lane runs its actions in this order
  bool operator==(const Program&) const = default;
};

std::string_view to_string(Lane lane);
std::string_view to_string(Kind kind);
std::string to_text(const Action& action);
std::string to_text(const Program& program);  // header line, then one line an action
Result<Action> action_from_text(std::string_view line);
Result<Program> program_from_text(std::string_view text);  // errors name the line

// XXH3-128 of the program with its rank left out: equal for ranks of one class.
std::string class_hash(const Program& program);

}  // namespace ptrain::program
