#include "core/data/lengths.h"

#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "core/data/tokenizer_identity.h"

namespace ptrain::data {

namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr int kExactBits = 6;  // leading bits that lengths of one class share
// A reader's limits; the products of two of them stay far from overflowing.
constexpr std::int64_t kMostCount = std::int64_t{1} << 40;
constexpr std::size_t kMostSources = 4096;
constexpr std::size_t kMostLengths = 4096;

tl::unexpected<Error> refuse(const std::string& what) {
  return fail(ExitCode::kUnusable, "the summary of document lengths " + what,
              "remove it: the next run or `ptrain data` writes it again");
}

bool is_count(const json& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() > 0 &&
         value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMostCount);
}

Result<std::vector<LengthCount>> read_source(const json& list) {
  if (!list.is_array() || list.size() > kMostLengths) return refuse("has a source that is no list");
  std::vector<LengthCount> out;
  for (const json& pair : list) {
    if (!pair.is_array() || pair.size() != 2 || !is_count(pair[0]) || !is_count(pair[1]))
      return refuse("holds something that is not [length, documents]");
    const LengthCount count{pair[0].get<std::int64_t>(), pair[1].get<std::int64_t>()};
    if (!out.empty() && out.back().length >= count.length)
      return refuse("has lengths that do not rise");
    out.push_back(count);
  }
  return out;
}

}  // namespace

void LengthCounter::add(std::int64_t length) {
  if (length < 1) return;
  const int width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(length)));
  const int shift = std::max(0, width - kExactBits);
  Class& found = classes_[length >> shift << shift];
  found.documents += 1;
  found.inputs += length;
}

std::vector<LengthCount> LengthCounter::counts() const {
  std::vector<LengthCount> out;
  for (const auto& [least, one] : classes_)
    out.push_back({(one.inputs + one.documents / 2) / one.documents, one.documents});
  return out;
}

std::string to_text(const DocumentLengths& lengths) {
  json sources = json::array();
  for (const auto& source : lengths.sources) {
    json list = json::array();
    for (const LengthCount& count : source) list.push_back({count.length, count.documents});
    sources.push_back(std::move(list));
  }
  const json object{
      {"version", kVersion}, {"index", lengths.content_hash}, {"sources", std::move(sources)}};
  return object.dump() + "\n";
}

Result<DocumentLengths> lengths_from_text(std::string_view text) {
  if (text.size() > kMostLengthsBytes) return refuse("is too large");
  // What it holds nests three deep; what goes deeper is not read on.
  bool deep = false;
  const auto shallow = [&](int depth, json::parse_event_t, json&) {
    deep = deep || depth > 4;
    return depth <= 4;
  };
  const json object = json::parse(text, shallow, false);
  if (deep || !object.is_object()) return refuse("is not a JSON object of this kind");
  if (object.value("version", json()) != kVersion) return refuse("is of another version");
  const json index = object.value("index", json());
  const json sources = object.value("sources", json());
  if (!index.is_string() || !sources.is_array() || sources.size() > kMostSources)
    return refuse("lacks `index` or `sources`");
  DocumentLengths out{index.get<std::string>(), {}};
  for (const json& source : sources) {
    PTRAIN_TRY(auto counts, read_source(source));
    out.sources.push_back(std::move(counts));
  }
  return out;
}

std::string lengths_name(const recipe::Data& data, const std::string& recipe_folder) {
  std::string text =
      fmt::format("{} {} {} {} {}\n", tokenizer_identity(data), data.validation_fraction,
                  data.end_token, data.max_documents, recipe_folder);
  for (const auto* sources : {&data.train, &data.validation}) {
    text += fmt::format("{} sources\n", sources->size());
    for (const recipe::DataSource& source : *sources)
      text += fmt::format("{} {}\n", static_cast<int>(source.format), source.path);
  }
  return fmt::format("lengths-{}.json", hash128_hex(text));
}

std::string index_folder(const recipe::Data& data, const std::string& recipe_folder,
                         const std::string& user_cache) {
  if (data.cache.starts_with('/')) return data.cache;
  if (!data.cache.empty()) return recipe_folder + "/" + data.cache;
  return user_cache.empty() ? "" : user_cache + "/index";
}

}  // namespace ptrain::data
