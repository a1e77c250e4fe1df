#include "engine/execute/calls.h"

#include "core/program/segments.h"
#include "engine/base/engine_error.h"

namespace ptrain::execute {
namespace {

[[noreturn]] void differ(const program::Action& action, const std::string& what) {
  throw EngineError(ExitCode::kBug, program::to_text(action) + ": " + what);
}

std::string described(const layers::Exchange* exchange) {
  if (exchange == nullptr) return "no exchange";
  return std::string(to_string(exchange->kind)) + " over " + std::string(to_string(exchange->axis));
}

}  // namespace

Calls::Entry& Calls::entry_of(const program::Action& segment) {
  const auto entry = entries_.find(key_of(segment));
  if (entry == entries_.end()) differ(segment, "no call of this layer is under way");
  return entry->second;
}

Call& Calls::begin(const program::Action& segment) {
  const auto [entry, is_new] = entries_.try_emplace(key_of(segment));
  if (!is_new) differ(segment, "the call before it is not finished");
  return entry->second.call;
}

bool Calls::resume(const program::Action& segment) {
  Entry& entry = entry_of(segment);
  if (entry.pending != nullptr) differ(segment, "needs " + described(entry.pending) + " first");
  entry.pending = entry.call.task->resume();
  return entry.pending == nullptr;
}

std::int64_t Calls::bytes_of(const program::Action& exchange) const {
  // Asked of copies too, on their own thread, while this one changes the entries.
  if (!program::exchanges_within_call(exchange)) return 0;
  const auto entry = entries_.find(key_of(exchange));
  const bool waits = entry != entries_.end() && entry->second.pending != nullptr;
  return waits ? entry->second.pending->bytes : 0;
}

void Calls::exchange(const program::Action& exchange, comm::Communicator& ranks) {
  Entry& entry = entry_of(exchange);
  const layers::Exchange* pending = entry.pending;
  const bool agrees = pending != nullptr &&
                      exchange.attribute("kind") == to_string(pending->kind) &&
                      exchange.attribute("axis") == to_string(pending->axis);
  if (!agrees) differ(exchange, "the layer's code needs " + described(pending));
  entry.exchange = exchange.id;
  entry.is_beside = pending->kind == layers::ExchangeKind::kShift;
  if (pending->start) entry.work = pending->start(ranks);
}

int Calls::wait_before(const program::Action& action) {
  const auto found = entries_.find(key_of(action));
  if (found == entries_.end() || found->second.exchange < 0) return -1;
  Entry& entry = found->second;
  const bool is_segment = action.kind != program::Kind::kExchange;
  if (is_segment && entry.is_beside) {
    entry.pending = nullptr;
    return -1;
  }
  if (entry.work != nullptr) entry.work->wait();
  entry.work = nullptr;
  if (is_segment) entry.pending = nullptr;
  return std::exchange(entry.exchange, -1);
}

void Calls::end(const program::Action& segment) { entries_.erase(key_of(segment)); }

}  // namespace ptrain::execute
