#include "core/program/passes/passes.h"
#include "core/program/segments.h"

namespace ptrain::program {
namespace {

Action exchange_after(const Action& segment, const model::ExchangeSpec& spec) {
  Action action = segment;
  action.kind = Kind::kExchange;
  action.attributes = {{"kind", std::string(to_string(spec.kind))},
                       {"axis", std::string(to_string(spec.axis))},
                       {"token_bytes", std::to_string(spec.bytes_per_token)}};
  action.after.clear();
  return action;
}

// The last segment keeps the id, so that who waits for the call waits for its end; the first waits
// for what the call waits for.
void cut(Action call, const std::vector<model::ExchangeSpec>& exchanges, Draft& out) {
  for (std::size_t i = 0; i < exchanges.size(); ++i) {
    Action segment = call;
    segment.segment = static_cast<int>(i);
    const Action exchange = exchange_after(segment, exchanges[i]);
    out.add(std::move(segment));
    out.add(exchange);
    call.after.clear();
  }
  call.segment = static_cast<int>(exchanges.size());
  out.keep(std::move(call));
}

}  // namespace

Draft add_exchanges(Draft draft, const PassContext& context) {
  Draft out = draft.successor();
  for (Action& action : draft.actions()) {
    const auto exchanges = exchanges_of(action, context.architecture);
    if (exchanges.empty()) {
      out.keep(std::move(action));
    } else {
      cut(std::move(action), exchanges, out);
    }
  }
  return out;
}

}  // namespace ptrain::program
