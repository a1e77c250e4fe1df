#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "engine/checkpoint/file_plan.h"
#include "engine/checkpoint/item.h"
#include "engine/checkpoint/publisher.h"
#include "engine/checkpoint/rank_file.h"
#include "engine/comm/communicator.h"

namespace ptrain::checkpoint {

// A save as turns of work that each rank does alone, on any thread, and agreements of all ranks:
// the ranks write their files, agree, the first one puts the folder in place, and they agree again.
// The first one lists what is in all files without asking: it follows from the layout
// (file_plan.h).
//   Saving saving(folder, items, world);
//   do saving.work(); while (!saving.agree());
class Saving {
 public:
  // As save(). The data of `items` must stay as it is to the end, and `items_of` work in any
  // thread till then. Collective over `world`, which must live longer.
  Saving(const std::string& folder, Items items, comm::Communicator& world, ItemsOf items_of);

  // One turn, without communication. What goes wrong is told by agree(). After a stop is requested
  // it gives up soon, with an error.
  void work(const std::stop_token& stop = {});
  // Collective, after every rank's turn. True: the checkpoint is in place. EngineError: as save(),
  // and this object is of no more use.
  bool agree();
  // On the first rank after its second turn: whether the checkpoint is in place.
  bool is_published() const { return is_publishing_ && is_first() && !failure_; }

 private:
  bool is_first() const { return world_.rank() == 0; }
  void write(const std::stop_token& stop);
  std::vector<RankFile> files_of_all();
  void agree_or_discard();

  Publisher publisher_;
  Items items_;
  comm::Communicator& world_;
  bool is_publishing_ = false;
  ItemsOf items_of_;
  RankFile written_;                  // by this rank
  std::vector<std::string> reports_;  // of all ranks, on the first one
  std::optional<Error> failure_;      // of the last turn
};

}  // namespace ptrain::checkpoint
