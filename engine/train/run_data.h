#pragma once

#include <memory>

#include "core/run/plan.h"
#include "engine/comm/communicator.h"
#include "engine/data/index.h"
#include "engine/data/tokenizer.h"
#include "engine/train/progress.h"

namespace ptrain::train {

struct RunData {
  std::shared_ptr<const data::Index> train;
  std::shared_ptr<const data::Index> validation;     // null: none
  std::shared_ptr<const data::Tokenizer> tokenizer;  // of samples; null: the recipe asks for none
  bool sources_changed = false;  // the files on disk are not those the indices were built from
};

// The token indices of a run: those that its checkpoint records, or those of the recipe, built
// where they are missing. Collective over the world: rank 0 builds, the others wait. EngineError
// (kUnusable): no data, or other data than the checkpoint was trained on.
RunData open_data(const run::Plan& plan, const Progress& progress, comm::Communicator& world);

}  // namespace ptrain::train
