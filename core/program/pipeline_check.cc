#include "core/program/pipeline_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptrain::program {
namespace {

bool is_forward(Kind kind) {
  return kind == Kind::kForward || kind == Kind::kSendForward || kind == Kind::kReceiveForward;
}

}  // namespace

PipelineCheck::PipelineCheck(const Pipeline& pipeline, int rank, int num_micro_batches)
    : pipeline_(pipeline),
      rank_(rank),
      num_micro_batches_(num_micro_batches),
      passages_(static_cast<std::size_t>(num_micro_batches * pipeline.num_stages())),
      embedded_(static_cast<std::size_t>(num_micro_batches)),
      shared_(static_cast<std::size_t>(num_micro_batches)) {}

int PipelineCheck::num_layers(int stage) const {
  return pipeline_.layers_of(stage).end - pipeline_.layers_of(stage).begin;
}

bool PipelineCheck::is_known(const Action& action) const {
  return action.stage >= 0 && action.stage < pipeline_.num_stages() && holds(action.stage) &&
         action.micro_batch >= 0 && action.micro_batch < num_micro_batches_;
}

// The stage's first layer in this direction needs what another rank has made.
bool PipelineCheck::comes_from_away(const Action& action, bool forward) const {
  const int source = action.stage + (forward ? -1 : 1);
  return pipeline_.rank_of(source) >= 0 && !holds(source);
}

// What the first layer of a stage needs is there.
PipelineCheck::Broken PipelineCheck::arrived(const Action& action, bool forward,
                                             const Way& way) const {
  if (comes_from_away(action, forward)) {
    if (way.received < 0) return "nothing was received for it";
    if (!way.waits) return fmt::format("does not wait for {}", way.received);
    return std::nullopt;
  }
  const int source = action.stage + (forward ? -1 : 1);
  if (pipeline_.rank_of(source) < 0) return std::nullopt;
  const Passage& other = passage(source, action.micro_batch);
  const Way& before = forward ? other.forward : other.backward;
  if (before.layers == num_layers(source)) return std::nullopt;
  return fmt::format("stage {} has not finished m{}", source, action.micro_batch);
}

void PipelineCheck::begin(const Action& action) {
  if (!is_known(action) || action.kind == Kind::kRecompute) return;
  Passage& here = passage(action.stage, action.micro_batch);
  Way& way = is_forward(action.kind) ? here.forward : here.backward;
  way.waits = std::ranges::find(action.after, way.received) != action.after.end();
}

PipelineCheck::Broken PipelineCheck::forward(const Action& action, int compute) {
  if (!is_known(action)) return "no such stage here";
  Way& way = passage(action.stage, action.micro_batch).forward;
  const int next = pipeline_.layers_of(action.stage).begin + way.layers;
  if (way.layers == num_layers(action.stage) || next != action.layer_first)
    return fmt::format("m{} is at layer {}", action.micro_batch, next);
  if (action.stage == 0 && pipeline_.spreads_embedding &&
      !embedded_[static_cast<std::size_t>(action.micro_batch)].forward)
    return fmt::format("m{} is not embedded", action.micro_batch);
  if (way.layers == 0)
    if (auto broken = arrived(action, true, way)) return broken;
  way.layers += 1;
  way.made = compute;
  return std::nullopt;
}

PipelineCheck::Broken PipelineCheck::backward(const Action& action, int compute) {
  if (!is_known(action)) return "no such stage here";
  Passage& here = passage(action.stage, action.micro_batch);
  Way& way = here.backward;
  const int next = pipeline_.layers_of(action.stage).end - 1 - way.layers;
  const int all = num_layers(action.stage);
  if (here.forward.layers != all || way.layers == all || next != action.layer_first)
    return fmt::format("m{} is {} layers forward and {} back", action.micro_batch,
                       here.forward.layers, way.layers);
  if (way.layers == 0)
    if (auto broken = arrived(action, false, way)) return broken;
  way.layers += 1;
  way.made = compute;
  if (action.kind == Kind::kBackwardInput) {
    here.owed.resize(static_cast<std::size_t>(all));
    here.owed[static_cast<std::size_t>(all - way.layers)] = true;
  }
  return std::nullopt;
}

PipelineCheck::Broken PipelineCheck::weight(const Action& action) {
  if (!is_known(action)) return "no such stage here";
  auto& owed = passage(action.stage, action.micro_batch).owed;
  const int layer = action.layer_first - pipeline_.layers_of(action.stage).begin;
  if (layer < 0 || layer >= static_cast<int>(owed.size()) || !owed[static_cast<std::size_t>(layer)])
    return "no gradient of its input was made before, or it was made whole";
  owed[static_cast<std::size_t>(layer)] = false;
  return std::nullopt;
}

PipelineCheck::Broken PipelineCheck::embedding(const Action& action) {
  Embedded& here = embedded_[static_cast<std::size_t>(action.micro_batch)];
  bool& done = is_forward(action.kind) ? here.forward : here.back;
  if (done) return "was done already";
  done = true;
  if (&done == &here.forward || !holds(0)) return std::nullopt;
  if (passage(0, action.micro_batch).backward.layers == num_layers(0)) return std::nullopt;
  return fmt::format("stage 0 has not gone back with m{}", action.micro_batch);
}

bool PipelineCheck::is_shared(const Action& action) const {
  const int last = pipeline_.last_stage();
  return pipeline_.spreads_head && !holds(last) && action.stage == last &&
         action.layer_first == pipeline_.layers_of(last).end - 1;
}

PipelineCheck::Broken PipelineCheck::shared(const Action& action) {
  const auto m = static_cast<std::size_t>(action.micro_batch);
  if (shared_[m]) return "was done already";
  shared_[m] = true;
  return std::nullopt;
}

PipelineCheck::Broken PipelineCheck::send(const Action& action, int compute) {
  if (!is_known(action)) return "no such stage here";
  const bool forward = is_forward(action.kind);
  const int receiver = pipeline_.rank_of(action.stage + (forward ? 1 : -1));
  if (receiver < 0 || receiver == rank_) return "nobody else needs it";
  if (action.attribute("to") != std::to_string(receiver))
    return fmt::format("rank {} of the pipeline needs it", receiver);
  Passage& here = passage(action.stage, action.micro_batch);
  Way& way = forward ? here.forward : here.backward;
  if (way.sent) return "was sent already";
  if (way.layers != num_layers(action.stage) || way.made > compute)
    return "does not wait for what it sends";
  way.sent = true;
  return std::nullopt;
}

PipelineCheck::Broken PipelineCheck::receive(const Action& action) {
  if (!is_known(action)) return "no such stage here";
  const bool forward = is_forward(action.kind);
  if (!comes_from_away(action, forward)) return "nobody else makes it";
  const int sender = pipeline_.rank_of(action.stage + (forward ? -1 : 1));
  if (action.attribute("from") != std::to_string(sender))
    return fmt::format("rank {} of the pipeline makes it", sender);
  Passage& here = passage(action.stage, action.micro_batch);
  Way& way = forward ? here.forward : here.backward;
  if (way.received >= 0) return "was received already";
  way.received = action.id;
  return std::nullopt;
}

PipelineCheck::Broken PipelineCheck::sent(int stage, int micro_batch, bool forward) const {
  const int receiver = pipeline_.rank_of(stage + (forward ? 1 : -1));
  const Passage& here = passage(stage, micro_batch);
  if (receiver < 0 || receiver == rank_ || (forward ? here.forward : here.backward).sent)
    return std::nullopt;
  return fmt::format("m{} of stage {} is never sent {}", micro_batch, stage,
                     forward ? "on" : "back");
}

PipelineCheck::Broken PipelineCheck::end(bool trains) const {
  for (int m = 0; pipeline_.spreads_embedding && m < num_micro_batches_; ++m) {
    const Embedded& here = embedded_[static_cast<std::size_t>(m)];
    if (!here.forward || here.back != trains)
      return fmt::format("its share of the embedding for m{} is not done", m);
  }
  const bool shares = pipeline_.spreads_head && !holds(pipeline_.last_stage());
  for (int m = 0; shares && m < num_micro_batches_; ++m)
    if (!shared_[static_cast<std::size_t>(m)])
      return fmt::format("its share of the head for m{} is not done", m);
  for (int stage = 0; stage < pipeline_.num_stages(); ++stage) {
    if (!holds(stage)) continue;
    for (int m = 0; m < num_micro_batches_; ++m) {
      const Passage& here = passage(stage, m);
      const int all = num_layers(stage);
      if (here.forward.layers != all || here.backward.layers != (trains ? all : 0))
        return fmt::format("m{} is not finished", m);
      if (auto broken = sent(stage, m, true)) return broken;
      if (!trains) continue;
      if (auto broken = sent(stage, m, false)) return broken;
    }
  }
  return std::nullopt;
}

}  // namespace ptrain::program
