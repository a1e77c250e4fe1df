#include "engine/checkpoint/saving.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/checkpoint/agree.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/rank_file.h"

namespace ptrain::checkpoint {

namespace {

using Json = nlohmann::json;

std::vector<RankFile> parse_reports(const std::vector<std::string>& reports) {
  std::vector<RankFile> files;
  for (const std::string& report : reports)
    files.push_back(rank_file_from_json(Json::from_msgpack(report)));
  return files;
}

}  // namespace

Saving::Saving(const std::string& folder, Items items, comm::Communicator& world)
    : publisher_(folder), items_(std::move(items)), world_(world) {
  failure_ = failure_of([&] {
    if (is_first()) publisher_.prepare();
  });
  agree_or_discard();
}

void Saving::write(const std::stop_token& stop) {
  const RankFile file = write_rank_file(publisher_.temporary(), items_, world_.rank(), stop);
  const auto bytes = Json::to_msgpack(to_json(file));
  report_.assign(bytes.begin(), bytes.end());
}

void Saving::work(const std::stop_token& stop) {
  failure_ = failure_of([&] {
    if (!is_publishing_)
      write(stop);
    else if (is_first())
      publisher_.publish(parse_reports(reports_));
  });
}

bool Saving::agree() {
  agree_or_discard();
  if (is_publishing_) return true;
  is_publishing_ = true;
  fault::point("save.reports");
  reports_ = gather_to_first(report_, world_);
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

void save(const std::string& folder, const Items& items, comm::Communicator& world) {
  Saving saving(folder, items, world);
  do saving.work();
  while (!saving.agree());
}

}  // namespace ptrain::checkpoint
