#include "engine/checkpoint/saving.h"

#include <fmt/format.h>

#include <utility>

#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/checkpoint/agree.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/rank_file.h"

namespace ptrain::checkpoint {

namespace {

// The file of another rank, as the layout has it and its rank reports it. The two must agree.
RankFile planned_file(const ItemsOf& items_of, int rank, const RankReport& report) {
  const Items items = items_of(rank);
  FilePlan plan = plan_file(items, rank);
  if (plan.bytes != report.bytes || digest_of(plan.content) != report.content)
    throw EngineError(ExitCode::kBug,
                      fmt::format("rank {} saved other tensors than its layout has: a file of {} "
                                  "bytes, by the layout {}{}",
                                  rank, report.bytes, plan.bytes,
                                  report.bytes == plan.bytes ? " of other content" : ""));
  RankFile file;
  if (!items.tensors.empty()) file.name = rank_file_name(rank);
  file.listed.bytes = report.bytes;
  file.listed.hashes = report.hashes;
  file.content = std::move(plan.content);
  return file;
}

}  // namespace

Saving::Saving(const std::string& folder, Items items, comm::Communicator& world, ItemsOf items_of)
    : publisher_(folder), items_(std::move(items)), world_(world), items_of_(std::move(items_of)) {
  failure_ = failure_of([&] {
    if (is_first()) publisher_.prepare();
  });
  agree_or_discard();
}

void Saving::write(const std::stop_token& stop) {
  written_ = write_rank_file(publisher_.temporary(), items_, world_.rank(), stop);
}

std::vector<RankFile> Saving::files_of_all() {
  std::vector<RankFile> files{std::move(written_)};
  for (std::size_t rank = 1; rank < reports_.size(); ++rank)
    files.push_back(
        planned_file(items_of_, static_cast<int>(rank), report_from_bytes(reports_[rank])));
  return files;
}

void Saving::work(const std::stop_token& stop) {
  failure_ = failure_of([&] {
    if (!is_publishing_)
      write(stop);
    else if (is_first())
      publisher_.publish(files_of_all());
  });
}

bool Saving::agree() {
  agree_or_discard();
  if (is_publishing_) return true;
  is_publishing_ = true;
  fault::point("save.reports");
  const run::ListedFile& listed = written_.listed;
  reports_ =
      gather_to_first(to_bytes({listed.bytes, listed.hashes, digest_of(written_.content)}), world_);
  return false;
}

void Saving::agree_or_discard() {
  try {
    agree_on(failure_, world_);
  } catch (const EngineError&) {
    if (is_first()) publisher_.discard();
    throw;
  }
}

void save(const std::string& folder, const Items& items, comm::Communicator& world,
          const ItemsOf& items_of) {
  Saving saving(folder, items, world, items_of);
  do saving.work();
  while (!saving.agree());
}

}  // namespace ptrain::checkpoint
