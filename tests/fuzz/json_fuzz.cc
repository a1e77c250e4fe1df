// Any text is refused as plan, request, event, verdict or control message, or what is read survives
// being written and read again. Texts are compared, since a NaN is not equal to itself.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/run/control.h"
#include "core/run/event.h"
#include "core/run/json_fields.h"
#include "core/run/plan.h"
#include "core/run/request.h"

namespace {

using namespace ptrain;

void require(bool holds) {
  if (!holds) std::abort();
}

template <class Read, class Write>
void try_format(std::string_view input, Read read, Write write) {
  const auto value = read(input);
  if (!value) return require(!value.error().message.empty());
  const std::string text = write(*value);
  const auto again = read(std::string_view(text));
  require(again.has_value() && write(*again) == text);
}

Result<run::Event> read_event(std::string_view text) {
  return run::parse_json(text, "the event").and_then(run::event_from_json);
}

Result<run::Verdict> read_verdict(std::string_view text) {
  return run::parse_json(text, "the verdict").and_then(run::verdict_from_json);
}

std::string dump(const auto& value) { return run::dump_line(run::to_json(value)); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try_format(input, run::plan_from_text, [](const run::Plan& plan) { return run::to_text(plan); });
  try_format(input, run::request_from_json_text, run::to_json_text);
  try_format(input, run::message_from_line, run::to_line);
  try_format(input, read_event, dump<run::Event>);
  try_format(input, read_verdict, dump<run::Verdict>);
  return 0;
}
