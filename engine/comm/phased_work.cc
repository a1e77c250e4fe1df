#include "engine/comm/phased_work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/engine_error.h"

namespace ptrain::comm {
namespace {

std::string describe(const Label& label, const std::vector<int>& missing) {
  std::vector<int> ranks;
  for (const int rank : missing) ranks.push_back(label.world_ranks[static_cast<std::size_t>(rank)]);
  const std::string names = ranks.empty() ? "unknown" : fmt::format("[{}]", fmt::join(ranks, ", "));
  return fmt::format("communicator {}: {} (number {}), missing ranks {}", label.communicator,
                     label.verb, label.sequence, names);
}

}  // namespace

void throw_timed_out(const Label& label, const std::vector<int>& missing, double limit_s) {
  throw EngineError(ExitCode::kHang,
                    fmt::format("{}: nothing came for {} s", describe(label, missing), limit_s),
                    "see the logs of the missing ranks: they hang, are much slower, or call the "
                    "collectives in another order");
}

void throw_peer_failed(const Label& label, const std::vector<int>& missing, int world_rank) {
  throw EngineError(ExitCode::kRankError,
                    fmt::format("{}: rank {} failed", describe(label, missing), world_rank));
}

PhasedWork::PhasedWork(Transport& transport, std::shared_ptr<RankState> state, Label label, int tag,
                       std::vector<Phase> phases)
    : transport_(transport),
      state_(std::move(state)),
      label_(std::move(label)),
      tag_(tag),
      phases_(std::move(phases)) {
  if (!advance()) state_->add(*this);
}

PhasedWork::~PhasedWork() {
  if (complete()) return;
  state_->remove(*this);
  transfer_.reset();
  // Messages of a backend that cannot take them back may still arrive: their memory must live.
  state_->keep(std::move(phases_));
}

bool PhasedWork::advance() {
  while (!complete()) {
    if (transfer_ == nullptr) {
      const Phase& phase = phases_[next_++];
      transfer_ = transport_.start(phase.sends, phase.receives, tag_);
    }
    if (!transfer_->done()) return false;
    transfer_.reset();
    Phase& phase = phases_[next_ - 1];
    if (phase.finish) phase.finish();
    phase = {};
  }
  return true;
}

bool PhasedWork::done() {
  if (complete()) return true;
  state_->advance_all();
  if (complete()) return true;
  if (const auto failed = transport_.failed_rank()) throw_peer_failed(label_, missing(), *failed);
  return false;
}

void PhasedWork::wait_doing(const std::function<void()>& meanwhile) {
  if (complete()) return;
  const double limit_s = transport_.time_limit_s();
  const auto over = [&] {
    if (meanwhile) meanwhile();
    return complete() || transport_.failed_rank().has_value();
  };
  const bool in_time = state_->wait(label_.mark(), over, limit_s);
  if (complete()) return;
  if (!in_time) throw_timed_out(label_, missing(), limit_s);
  throw_peer_failed(label_, missing(), *transport_.failed_rank());
}

}  // namespace ptrain::comm
