#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/dcp/archive.h"
#include "core/dcp/item.h"

namespace ptrain::dcp {

namespace {

using Bytes = std::span<const std::byte>;

Result<Bytes> record_data(Bytes item, const std::vector<Record>& records, std::string_view name) {
  const auto found = std::find_if(records.begin(), records.end(),
                                  [&](const Record& record) { return record.name == name; });
  if (found == records.end())
    return fail(ExitCode::kUnusable, "it has no record " + std::string(name));
  const std::size_t header = std::min<std::size_t>(found->header, item.size());
  PTRAIN_TRY(const std::uint64_t offset,
             data_offset(item.subspan(header, std::min(kLocalHeader, item.size() - header)), *found,
                         item.size()));
  if (offset > item.size() || found->size > item.size() - offset)
    return fail(ExitCode::kUnusable, "a record lies outside of its item");
  return item.subspan(offset, found->size);
}

template <class T>
nlohmann::json number_at(Bytes data) {
  T value;
  std::memcpy(&value, data.data(), sizeof(T));
  return value;
}

// A tensor of one element as a number.
Result<nlohmann::json> one_element(Bytes item, const std::vector<Record>& records, Bytes pickle) {
  PTRAIN_TRY(const StoredTensor tensor, read_tensor(pickle));
  const bool single = std::all_of(tensor.sizes.begin(), tensor.sizes.end(),
                                  [](std::int64_t size) { return size == 1; });
  PTRAIN_TRY(const Bytes storage, record_data(item, records, tensor.record));
  const auto element = static_cast<std::size_t>(size_of_stored(tensor.dtype));
  const auto offset = static_cast<std::size_t>(tensor.offset);
  if (!single || element == 0 || offset >= storage.size() / element)
    return fail(ExitCode::kUnusable, "it is no tensor of one element");
  const Bytes data = storage.subspan(offset * element, element);
  if (tensor.dtype == "float32") return number_at<float>(data);
  if (tensor.dtype == "float64") return number_at<double>(data);
  if (tensor.dtype == "int32") return number_at<std::int32_t>(data);
  if (tensor.dtype == "int64") return number_at<std::int64_t>(data);
  return fail(ExitCode::kUnusable, "it is a number of the type " + tensor.dtype);
}

}  // namespace

Result<nlohmann::json> read_small_item(Bytes item) {
  const Bytes tail = item.last(std::min(kArchiveTail, item.size()));
  PTRAIN_TRY(const DirectoryPlace place, find_directory(tail, item.size()));
  if (place.offset > item.size() || place.size > item.size() - place.offset)
    return fail(ExitCode::kUnusable, "its directory lies outside of it");
  PTRAIN_TRY(const auto records,
             read_directory(item.subspan(place.offset, place.size), item.size()));
  PTRAIN_TRY(const Bytes pickle, record_data(item, records, "data.pkl"));
  auto value = read_value(pickle);
  return value ? std::move(value) : one_element(item, records, pickle);
}

}  // namespace ptrain::dcp
