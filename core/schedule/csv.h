#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/schedule/schedule.h"
#include "core/schedule/steps.h"

namespace ptrain::schedule {

// The text form of torch.distributed.pipelining: a row is a rank, a cell is STAGE WORD MICRO-BATCH
// ("0F0", "1I3", "2SEND_F1", "0UNSHARD"), a pair "(0F7;7B3)OVERLAP_F_B"; empty cells are idle and
// ignored. Our extension: "2F7.1*0" is slice 1 on copy 0 of the weights.

// What the file says, cell by cell; `file` names it in errors.
Result<Steps> steps_from_csv(std::string_view text, const std::string& file);

// The work of the file. Its transfers and gathers are checked (transfers.h) and dropped, for ptrain
// places its own. Whether the work is complete and in an order that ends, check.h says.
Result<Schedule> from_csv(std::string_view text, const std::string& file);

// A row a rank, no idle cells. Slices and copies are written where the schedule has several.
std::string to_csv(const Schedule& schedule);

// The same, refused where PyTorch has no word for what the schedule does.
Result<std::string> to_torch_csv(const Schedule& schedule);

}  // namespace ptrain::schedule
