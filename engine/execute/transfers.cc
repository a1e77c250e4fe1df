#include "engine/execute/transfers.h"

#include <charconv>
#include <utility>

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"

namespace ptrain::execute {
namespace {

using program::Kind;

int peer_in(const program::Action& action, std::string_view attribute) {
  const std::string_view text = action.attribute(attribute);
  int peer = -1;
  std::from_chars(text.data(), text.data() + text.size(), peer);
  return peer;
}

comm::Piece piece_of(int peer, void* data, std::int64_t bytes) {
  return {peer, {static_cast<std::byte*>(data), static_cast<std::size_t>(bytes)}};
}

}  // namespace

comm::Communicator& Transfers::ranks_of(const program::Action& action) const {
  const bool forward = action.kind == Kind::kSendForward || action.kind == Kind::kReceiveForward;
  comm::Communicator* ranks = forward ? forward_ : backward_;
  if (ranks == nullptr)
    throw EngineError(ExitCode::kBug, "no pipeline for " + program::to_text(action));
  return *ranks;
}

void Transfers::begin(int action, Buffer stream, comm::WorkHandle work) {
  if (watcher_) watcher_(action, true);
  entries_.emplace(action, Entry{std::move(stream), std::move(work), false});
}

void Transfers::send(const program::Action& action, Buffer stream, std::int64_t bytes) {
  const comm::Piece piece = piece_of(peer_in(action, "to"), stream.data(), bytes);
  comm::WorkHandle work = ranks_of(action).exchange({&piece, 1}, {});
  begin(action.id, std::move(stream), std::move(work));
}

void Transfers::receive(const program::Action& action, void* stream, std::int64_t bytes) {
  const comm::Piece piece = piece_of(peer_in(action, "from"), stream, bytes);
  begin(action.id, Buffer(), ranks_of(action).exchange({}, {&piece, 1}));
}

void Transfers::end(int action, Entry& entry) {
  if (!std::exchange(entry.ended, true) && watcher_) watcher_(action, false);
}

void Transfers::poll() {
  for (auto& [action, entry] : entries_)
    if (!entry.ended && entry.work->done()) end(action, entry);
}

void Transfers::wait(int action, const std::function<void()>& meanwhile) {
  const auto entry = entries_.find(action);
  if (entry == entries_.end()) return;
  entry->second.work->wait_doing(meanwhile);
  end(action, entry->second);
  if (!planted(Bug::kSendsKept)) entries_.erase(entry);
}

void Transfers::wait_all() {
  for (const auto& [action, entry] : entries_) entry.work->wait();
  for (auto& [action, entry] : entries_) end(action, entry);
  entries_.clear();
}

}  // namespace ptrain::execute
