// The test build's side of engine/base/fault.h and planted.h; the shipped one is no_faults.cc. The
// environment says what to do:
//   PTRAIN_TEST_BUG=NAME                    has that bug (kBugNames)
//   PTRAIN_TEST_FAULT="kill NAME RANK N"    rank RANK kills the whole run at its Nth pass of a
//   point PTRAIN_TEST_FAULT="record FILE"         appends "RANK NAME" to FILE at each pass
#include "engine/base/planted.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "engine/base/fault.h"
#include "tests/planted/process_tree.h"

namespace ptrain {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Bug::kCount)> kBugNames{
    "local_denominator",
    "clips_the_sum",
    "local_clip_norm",
    "decay_on_norms",
    "missing_reduction",
    "double_reduction",
    "stale_gather",
    "overwritten_gradient",
    "tied_gradient_lost",
    "stash_kept",
    "mask_leak",
    "recompute_without_turn",
    "normed_twice",
    "heads_not_summed",
    "padding_trained",
    "positions_go_on",
    "init_by_rank",
    "order_by_rank",
    "row_twice",
    "adam_step_restarts",
    "moment_not_restored",
    "saved_late",
    "learning_rate_late",
    "shards_swapped",
    "attention_zeroed",
    "offload_lost",
    "bias_on_every_rank",
    "local_vocabulary",
    "loss_on_every_rank",
    "key_value_sum_missing",
    "tensor_sum_missing",
    "tied_sum_missing",
    "norm_of_copies",
    "experts_untrained",
    "router_detached",
    "idle_expert_skipped",
    "capacity_of_batch",
    "balance_of_first_row",
    "capacity_by_rank",
    "balance_of_own_tokens",
    "router_sum_missing",
    "expert_rows_by_rank",
    "expert_parts_not_summed",
    "experts_over_dense",
    "experts_counted_twice",
    "shared_key_lost",
    "local_positions",
    "ring_not_merged",
    "key_value_copies_not_summed",
    "queued_overwritten",
    "stash_freed_at_input",
    "sends_kept",
    "mean_of_means",
    "targets_of_whole_rows",
    "vocabulary_repeated",
    "norm_without_experts",
    "heads_interleaved",
    "turned_back_late",
    "ring_gradients_lost",
    "first_target_dropped",
    "end_not_learned",
    "row_lost",
    "carried_lost",
    "experts_start_at_zero",
    "auxiliary_dropped",
    "routed_again",
    "head_parts_not_summed",
    "spread_rows_not_learned"};
static_assert(!kBugNames.back().empty(), "every bug has a name");

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "test engine: %s\n", what.c_str());
  std::abort();
}

// The bug that the environment names; kCount: none.
Bug chosen_bug() {
  const std::string name = variable("PTRAIN_TEST_BUG");
  if (name.empty()) return Bug::kCount;
  for (std::size_t i = 0; i < kBugNames.size(); ++i)
    if (kBugNames[i] == name) return static_cast<Bug>(i);
  refuse("PTRAIN_TEST_BUG: no bug is called " + name);
}

struct Order {
  enum class Kind { kNothing, kKill, kRecord } kind = Kind::kNothing;
  std::size_t point = 0;
  bool of_this_rank = false;
  int passes = 1;
  int file = -1;
};

std::size_t listed(const std::string& name) {
  for (std::size_t i = 0; i < fault::kPointNames.size(); ++i)
    if (fault::kPointNames[i] == name) return i;
  refuse("PTRAIN_TEST_FAULT: no point is called " + name);
}

Order chosen_order() {
  std::istringstream text(variable("PTRAIN_TEST_FAULT"));
  std::string verb, name, rank;
  Order order;
  if (!(text >> verb)) return order;
  text >> name;
  if (verb == "record") {
    order.kind = Order::Kind::kRecord;
    order.file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (order.file < 0) refuse("PTRAIN_TEST_FAULT: cannot write " + name);
    return order;
  }
  if (verb != "kill" || !(text >> rank >> order.passes))
    refuse("PTRAIN_TEST_FAULT: kill NAME RANK N");
  order.kind = Order::Kind::kKill;
  order.point = listed(name);
  order.of_this_rank = rank == variable("PMIX_RANK");
  return order;
}

}  // namespace

bool planted(Bug bug) {
  static const Bug chosen = chosen_bug();
  return bug == chosen;
}

void fault::point(Point place) {
  static const Order order = chosen_order();
  static std::atomic<int> passes = 0;
  if (order.kind == Order::Kind::kRecord) {
    const std::string line = std::to_string(::getpid()) + " " + variable("PMIX_RANK") + " " +
                             std::string(kPointNames[place.index()]) + "\n";
    if (::write(order.file, line.data(), line.size()) < 0) refuse("cannot record");
  }
  if (order.kind != Order::Kind::kKill || !order.of_this_rank) return;
  if (place.index() == order.point && ++passes == order.passes) planted_test::kill_whole_run();
}

}  // namespace ptrain
