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

// Beside the segment behind it goes what does not have to be there before.
bool is_ahead(const model::ExchangeSpec& spec) { return spec.kind == model::ExchangeKind::kShift; }

// The last segment keeps the id, so that who waits for the call waits for its end; the first waits
// for what the call waits for.
void cut(Action call, const std::vector<model::ExchangeSpec>& exchanges, Draft& out) {
  int under_way = -1;  // a shift
  for (std::size_t i = 0; i < exchanges.size(); ++i) {
    Action segment = call;
    segment.segment = static_cast<int>(i);
    Action exchange = exchange_after(segment, exchanges[i]);
    const int computed = out.add(std::move(segment));
    if (is_ahead(exchanges[i])) {
      exchange.lane = Lane::kGather;
      exchange.after.push_back(computed);
    }
    if (under_way >= 0) exchange.after.push_back(under_way);
    const int id = out.add(std::move(exchange));
    under_way = is_ahead(exchanges[i]) ? id : -1;
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
