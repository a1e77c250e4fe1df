#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/program/action.h"
#include "core/program/pipeline.h"

namespace ptrain::program {

// Part of RankCheck: each micro-batch passes each stage of the rank once forward, then once back,
// layer after layer; what another rank makes is received before and waited for, what another needs
// is sent after. Each call is one action, in order; `compute`: position in the compute lane up to
// which the action knows it to be finished, its own included. Each returns what is broken, or
// nothing.
class PipelineCheck {
 public:
  using Broken = std::optional<std::string>;

  // `rank`: of the pipeline, which must outlive this.
  PipelineCheck(const Pipeline& pipeline, int rank, int num_micro_batches);
  // A layer's call: what it begins with, and then, once it is complete, forward or backward.
  void begin(const Action& action);
  Broken forward(const Action& action, int compute);
  Broken backward(const Action& action, int compute);
  Broken weight(const Action& action);
  // What all ranks do of a spread embedding: once forward and once back for each micro-batch,
  // around what the first stage does with it.
  bool is_embedding(const Action& action) const {
    return pipeline_.spreads_embedding && action.layer_first == 0;
  }
  Broken embedding(const Action& action);
  // What this rank does of a spread head, whose stage another rank holds: once for each
  // micro-batch.
  bool is_shared(const Action& action) const;
  Broken shared(const Action& action);
  Broken send(const Action& action, int compute);
  Broken receive(const Action& action);
  Broken end(bool trains) const;

  bool holds(int stage) const { return pipeline_.rank_of(stage) == rank_; }

 private:
  // One direction of a micro-batch in one stage.
  struct Way {
    int layers = 0;      // done
    int made = 0;        // position of the last one in the compute lane
    int received = -1;   // id of the RECV
    bool waits = false;  // the call that began last waits for it
    bool sent = false;
  };
  struct Passage {
    Way forward, backward;
    std::vector<bool> owed;  // by layer of the stage: BACKWARD_WEIGHT has yet to come
  };
  struct Embedded {
    bool forward = false, back = false;
  };

  bool is_known(const Action& action) const;
  int num_layers(int stage) const;
  bool comes_from_away(const Action& action, bool forward) const;
  Broken arrived(const Action& action, bool forward, const Way& way) const;
  Broken sent(int stage, int micro_batch, bool forward) const;
  Passage& passage(int stage, int micro_batch) {
    return passages_[static_cast<std::size_t>(micro_batch * pipeline_.num_stages() + stage)];
  }
  const Passage& passage(int stage, int micro_batch) const {
    return passages_[static_cast<std::size_t>(micro_batch * pipeline_.num_stages() + stage)];
  }

  const Pipeline& pipeline_;
  int rank_;
  int num_micro_batches_;
  std::vector<Passage> passages_;   // by micro-batch, then stage
  std::vector<Embedded> embedded_;  // by micro-batch, of a spread embedding
  std::vector<bool> shared_;        // by micro-batch: its share of the head is done
};

}  // namespace ptrain::program
