#include "engine/checkpoint/rank_file.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/dcp/archive.h"
#include "core/dcp/item.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/checkpoint/file.h"

namespace ptrain::checkpoint {

namespace {

using Json = nlohmann::json;

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
    const std::byte* data = item.source();
    std::int64_t position = file_.size();
    auto chunks = plan_item(item, result_.name, position);
    for (const dcp::Chunk& chunk : chunks) {
      const auto bytes = dcp::volume(chunk.box.sizes) * size_of(item.dtype);
      write(std::string(name_of(item.dtype)), chunk, {data, static_cast<std::size_t>(bytes)});
      data += bytes;
    }
    PT_CHECK(file_.size() == position);
    add_item(result_.content, item, std::move(chunks));
  }

  RankFile finish() {
    file_.finish();
    result_.listed = file_.listed();
    fault::point("save.rank.done");
    return std::move(result_);
  }

 private:
  void write(const std::string& dtype, const dcp::Chunk& chunk, std::span<const std::byte> data) {
    fault::point("save.tensor");
    if (stop_.stop_requested()) throw EngineError(ExitCode::kUnusable, "the save is given up");
    const auto alignment = alignment_of(std::ssize(data));
    const dcp::Wrapping around = dcp::wrap_tensor(
        dcp::write_tensor(dtype, chunk.box.sizes), {data.size(), dcp::crc32(data), alignment},
        static_cast<std::uint64_t>(chunk.location.offset));
    file_.write(around.head);
    fault::point("save.tensor.data");
    file_.write(data);
    file_.write(around.tail);
    fault::point("save.tensor.end");
  }

  OutFile file_;
  const std::stop_token& stop_;
  RankFile result_;
};

// Of a file with these values and then these tensors.
std::int64_t size_of_file(std::span<const ValueItem> values,
                          const std::vector<TensorItem>& tensors) {
  std::int64_t size = 0;
  for (const ValueItem& item : values)
    size += std::ssize(dcp::wrap_value(dcp::write_value(item.value)));
  for (const TensorItem& item : tensors) plan_item(item, "", size);
  return size;
}

}  // namespace

RankFile write_rank_file(const std::string& folder, const Items& items, int rank,
                         const std::stop_token& stop) {
  const std::span values(items.values.data(), rank == 0 ? items.values.size() : 0);
  if (items.tensors.empty() && values.empty()) return {};
  RankWriter writer(folder, rank_file_name(rank), size_of_file(values, items.tensors), stop);
  for (const ValueItem& item : values) writer.value(item);
  for (const TensorItem& item : items.tensors) writer.tensor(item);
  return writer.finish();
}

std::string to_bytes(const RankReport& report) {
  const auto bytes = Json::to_msgpack(
      {{"bytes", report.bytes}, {"hashes", report.hashes}, {"content", report.content}});
  return {bytes.begin(), bytes.end()};
}

RankReport report_from_bytes(const std::string& bytes) {
  const Json json = Json::from_msgpack(bytes);
  return {json.at("bytes"), json.at("hashes"), json.at("content")};
}

}  // namespace ptrain::checkpoint
