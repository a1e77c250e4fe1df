#include "engine/checkpoint/rank_file.h"

#include <fmt/format.h>

#include "core/dcp/archive.h"
#include "core/dcp/item.h"
#include "core/run/manifest.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/checkpoint/file.h"

namespace ptrain::checkpoint {

namespace {

using Json = nlohmann::json;

// An item stays below 4 GiB, where the plain zip form ends, and a reader of a part reads little
// more.
constexpr std::int64_t kMaxItemBytes = std::int64_t{1} << 30;
// Large data starts on a page, so that it can be mapped or read directly.
constexpr std::int64_t kLargeItem = 1 << 16;
constexpr std::uint64_t kPage = 4096;
constexpr fault::FilePoints kPoints{"save.file.create", "save.file.write", "save.file.sync",
                                    "save.file.close"};

class RankWriter {
 public:
  RankWriter(const std::string& folder, std::string name, std::int64_t bytes_needed,
             const std::stop_token& stop)
      : file_(folder + "/" + name, bytes_needed, kPoints), stop_(stop) {
    result_.name = std::move(name);
  }

  void value(const ValueItem& item) {
    fault::point("save.value");
    const auto bytes = dcp::wrap_value(dcp::write_value(item.value));
    result_.content.values[item.key] = {result_.name, file_.size(),
                                        static_cast<std::int64_t>(bytes.size()), false};
    file_.write(bytes);
  }

  void tensor(const TensorItem& item) {
    dcp::TensorEntry& entry = result_.content.tensors[item.key];
    entry.dtype = name_of(item.dtype);
    entry.shape = item.shape;
    const std::int64_t element = size_of(item.dtype);
    const std::byte* data = item.source();
    const dcp::Box part = item.box();
    for (dcp::Box& box :
         dcp::boxes_of_run(part.sizes, item.begin, item.end, kMaxItemBytes / element)) {
      for (std::size_t d = 0; d < box.offsets.size(); ++d) box.offsets[d] += part.offsets[d];
      const auto bytes = static_cast<std::size_t>(dcp::volume(box.sizes) * element);
      const dcp::Location location = chunk(entry.dtype, box, {data, bytes});
      entry.chunks.push_back({std::move(box), location});
      data += bytes;
    }
  }

  RankFile finish() {
    file_.finish();
    result_.listed = file_.listed();
    fault::point("save.rank.done");
    return std::move(result_);
  }

 private:
  dcp::Location chunk(const std::string& dtype, const dcp::Box& box,
                      std::span<const std::byte> data) {
    fault::point("save.tensor");
    if (stop_.stop_requested()) throw EngineError(ExitCode::kUnusable, "the save is given up");
    const std::int64_t start = file_.size();
    const bool large = static_cast<std::int64_t>(data.size()) >= kLargeItem;
    const dcp::Wrapping around = dcp::wrap_tensor(
        dcp::write_tensor(dtype, box.sizes), {data.size(), dcp::crc32(data), large ? kPage : 64},
        static_cast<std::uint64_t>(start));
    file_.write(around.head);
    fault::point("save.tensor.data");
    file_.write(data);
    file_.write(around.tail);
    fault::point("save.tensor.end");
    return {result_.name, start, file_.size() - start, false};
  }

  OutFile file_;
  const std::stop_token& stop_;
  RankFile result_;
};

Json chunks_json(const dcp::TensorEntry& entry) {
  Json chunks = Json::array();
  for (const dcp::Chunk& chunk : entry.chunks)
    chunks.push_back(
        {chunk.box.offsets, chunk.box.sizes, chunk.location.offset, chunk.location.length});
  return {{"dtype", entry.dtype}, {"shape", entry.shape}, {"chunks", std::move(chunks)}};
}

}  // namespace

RankFile write_rank_file(const std::string& folder, const Items& items, int rank,
                         const std::stop_token& stop) {
  const bool writes_values = rank == 0 && !items.values.empty();
  std::int64_t bytes_needed = 0;
  for (const TensorItem& item : items.tensors)
    bytes_needed += (item.end - item.begin) * size_of(item.dtype);
  if (items.tensors.empty() && !writes_values) return {};
  RankWriter writer(folder, fmt::format("__{}_0.distcp", rank), bytes_needed, stop);
  if (writes_values)
    for (const ValueItem& item : items.values) writer.value(item);
  for (const TensorItem& item : items.tensors) writer.tensor(item);
  return writer.finish();
}

Json to_json(const RankFile& file) {
  Json tensors = Json::object();
  for (const auto& [key, entry] : file.content.tensors) tensors[key] = chunks_json(entry);
  Json values = Json::object();
  for (const auto& [key, place] : file.content.values) values[key] = {place.offset, place.length};
  return {{"name", file.name},
          {"bytes", file.listed.bytes},
          {"hashes", file.listed.hashes},
          {"tensors", std::move(tensors)},
          {"values", std::move(values)}};
}

RankFile rank_file_from_json(const Json& json) {
  RankFile file;
  file.name = json.at("name");
  file.listed.bytes = json.at("bytes");
  file.listed.hashes = json.at("hashes");
  for (const auto& [key, entry] : json.at("tensors").items()) {
    dcp::TensorEntry& tensor = file.content.tensors[key];
    tensor.dtype = entry.at("dtype");
    tensor.shape = entry.at("shape").get<dcp::Sizes>();
    for (const Json& chunk : entry.at("chunks"))
      tensor.chunks.push_back({{chunk[0].get<dcp::Sizes>(), chunk[1].get<dcp::Sizes>()},
                               {file.name, chunk[2], chunk[3], false}});
  }
  for (const auto& [key, place] : json.at("values").items())
    file.content.values[key] = {file.name, place[0], place[1], false};
  return file;
}

}  // namespace ptrain::checkpoint
