// Any text is refused as a schedule, with a reason, or it is one that runs to its end and is the
// same when it is written and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/schedule/check.h"
#include "core/schedule/csv.h"
#include "core/schedule/simulate.h"
#include "core/schedule/transfers.h"

namespace {

using namespace ptrain;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto steps = schedule::steps_from_csv(input, "own.csv");
  if (steps) (void)schedule::check_transfers(*steps, schedule::Sends::kRendezvous);
  const auto read = schedule::from_csv(input, "own.csv");
  if (!read) {
    require(!read.error().message.empty());
    return 0;
  }
  if (const auto status = schedule::check(*read); !status) {
    require(!status.error().message.empty());
    return 0;
  }
  const auto again = schedule::from_csv(schedule::to_csv(*read), "own.csv");
  require(again && *again == *read);
  require(schedule::simulate(*read, schedule::uniform_timing(*read, {})).has_value());
  (void)schedule::check_transfers(schedule::with_transfers(*read), schedule::Sends::kRendezvous);
  return 0;
}
