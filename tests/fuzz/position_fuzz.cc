// Any text is refused as a data position or survives its JSON form, and a loader takes it or
// refuses it.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/base/engine_error.h"
#include "engine/data/loader.h"
#include "tests/support/memory_index.h"

namespace {

using namespace ptrain;

void require(bool holds) {
  if (!holds) std::abort();
}

data::Loader small_loader() {
  const std::uint16_t end = data::kByteEos;
  data::Loader::Options options;
  options.seed = 1;
  options.sequence = 4;
  options.packing.window = 2;
  return {data::memory_index({{1, 2, 3, 4, 5, 6, end}, {7, 8, end}, {9, 10, 11, end}}), options};
}

void try_text(const std::string& text) {
  const data::Position position = data::position_from_json_text(text);
  require(data::position_from_json_text(data::to_json_text(position)) == position);
  data::Loader loader = small_loader();
  loader.restore(position);
  for (int step = 0; step < 4; ++step) loader.next(0, 1, 1, 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  try {
    try_text(std::string(reinterpret_cast<const char*>(input), size));
  } catch (const EngineError& error) {
    require(error.error().code == ExitCode::kUnusable);
  }
  return 0;
}
