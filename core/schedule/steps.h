#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// What a cell of a PyTorch file says: work, or what PyTorch lowers a schedule to.
enum class Word : std::uint8_t {
  kWork,
  kSendForward,     // this stage's output
  kReceiveForward,  // this stage's input
  kSendBackward,    // the gradient of this stage's input
  kReceiveBackward,
  kUnshard,
  kReshard,
  kReduceGradient,
};

std::string_view name_of(Word word);  // "SEND_F"; of work: ""

// A cell of a file; of a word that is not work, only stage and micro-batch mean something.
struct Step {
  Word word = Word::kWork;
  Cell cell;
  bool operator==(const Step&) const = default;
};
using Steps = std::vector<std::vector<Step>>;  // by rank

std::string to_text(const Step& step);

bool only_work(const Steps& steps);

// The work alone. Numbers of stages, micro-batches and slices are as many as the cells name.
Schedule work_of(const Steps& steps);

}  // namespace ptrain::schedule
