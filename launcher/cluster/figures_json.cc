#include "launcher/cluster/figures_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace ptrain::cluster {

namespace {

using nlohmann::json;

// Reads fields below `root`; keeps the first error.
class Reader {
 public:
  explicit Reader(const json& root) : root_(root) {}

  bool has(const std::string& pointer) const { return root_.contains(json::json_pointer(pointer)); }

  void number(const std::string& pointer, double& out) {
    const json::json_pointer place(pointer);
    if (!root_.contains(place) || !root_.at(place).is_number())
      return fail_at(pointer, "must be a number");
    const double value = root_.at(place).get<double>();
    if (!std::isfinite(value) || value <= 0)
      return fail_at(pointer, fmt::format("is {}, not above zero", value));
    out = value;
  }

  void whole(const std::string& pointer, std::int64_t& out) {
    constexpr double kMost = 1 << 24;
    double value = 1;
    number(pointer, value);
    if (value != std::floor(value) || value > kMost)
      return fail_at(pointer, fmt::format("must be a whole number of at most {}", kMost));
    out = static_cast<std::int64_t>(value);
  }

  void keys(const std::string& pointer, std::initializer_list<std::string_view> allowed) {
    const json& object = root_.at(json::json_pointer(pointer));
    if (!object.is_object()) return fail_at(pointer, "must be a mapping");
    for (const auto& [key, value] : object.items())
      if (std::find(allowed.begin(), allowed.end(), key) == allowed.end())
        fail_at(pointer + "/" + key,
                fmt::format("is not known; allowed: {}", fmt::join(allowed, ", ")));
  }

  std::size_t length(const std::string& pointer) {
    const json& list = root_.at(json::json_pointer(pointer));
    if (list.is_array() && !list.empty()) return list.size();
    fail_at(pointer, "must be a list with at least one entry");
    return 0;
  }

  void fail_at(const std::string& pointer, const std::string& what) {
    if (error_.empty()) error_ = fmt::format("{} {}", pointer, what);
  }
  const std::string& error() const { return error_; }

 private:
  const json& root_;
  std::string error_;
};

void read(Reader& reader, const std::string& at, TransferCost& out) {
  reader.keys(at, {"latency_s", "bytes_per_s"});
  reader.number(at + "/latency_s", out.latency_s);
  reader.number(at + "/bytes_per_s", out.bytes_per_s);
}

void read(Reader& reader, const std::string& at, DiskRate& out) {
  reader.keys(at, {"read_bytes_per_s", "write_bytes_per_s"});
  reader.number(at + "/read_bytes_per_s", out.read_bytes_per_s);
  reader.number(at + "/write_bytes_per_s", out.write_bytes_per_s);
}

void read(Reader& reader, const std::string& at, HeadCost& out) {
  reader.keys(at, {"block_s", "pair_s", "pair_dim_s"});
  reader.number(at + "/block_s", out.block_s);
  reader.number(at + "/pair_s", out.pair_s);
  reader.number(at + "/pair_dim_s", out.pair_dim_s);
}

void read(Reader& reader, const std::string& at, AttentionCost& out) {
  reader.keys(at, {"block_rows", "forward", "backward"});
  reader.whole(at + "/block_rows", out.block_rows);
  for (const char* pass : {"/forward", "/backward"})
    if (!reader.has(at + pass)) return reader.fail_at(at + pass, "is missing");
  read(reader, at + "/forward", out.forward);
  read(reader, at + "/backward", out.backward);
}

void read(Reader& reader, const std::string& at, std::vector<WidthShare>& out) {
  out.clear();
  const std::size_t length = reader.length(at);
  for (std::size_t i = 0; i < length; ++i) {
    const std::string entry = fmt::format("{}/{}", at, i);
    WidthShare share;
    reader.keys(entry, {"width", "forward", "backward"});
    reader.whole(entry + "/width", share.width);
    reader.number(entry + "/forward", share.forward);
    reader.number(entry + "/backward", share.backward);
    if (!out.empty() && out.back().width >= share.width)
      reader.fail_at(entry + "/width", "must be above the one before");
    out.push_back(share);
  }
}

void read_required(Reader& reader, Figures& figures) {
  for (const char* field : {"/matmul_flops_per_s", "/all_gather", "/reduce_scatter"})
    if (!reader.has(field)) return reader.fail_at(field, "is missing");
  reader.keys("/matmul_flops_per_s", {"float32", "float64", "bfloat16"});
  reader.number("/matmul_flops_per_s/float32", figures.matmul_float32);
  reader.number("/matmul_flops_per_s/float64", figures.matmul_float64);
  reader.number("/memory_bytes_per_s", figures.memory_bytes_per_s);
  read(reader, "/all_gather", figures.all_gather);
  read(reader, "/reduce_scatter", figures.reduce_scatter);
}

void read_optional(Reader& reader, Figures& figures) {
  if (reader.has("/matmul_flops_per_s/bfloat16"))
    reader.number("/matmul_flops_per_s/bfloat16", figures.matmul_bfloat16);
  if (reader.has("/matmul_shares")) read(reader, "/matmul_shares", figures.matmul_shares);
  if (reader.has("/matmul_shares_bfloat16"))
    read(reader, "/matmul_shares_bfloat16", figures.matmul_shares_bfloat16);
  if (reader.has("/attention")) {
    read(reader, "/attention", figures.attention);
    figures.attention_bfloat16 = figures.attention;
  }
  if (reader.has("/attention_bfloat16"))
    read(reader, "/attention_bfloat16", figures.attention_bfloat16);
  if (reader.has("/window")) read(reader, "/window", figures.window);
  if (reader.has("/disk")) read(reader, "/disk", figures.disk);
  if (reader.has("/kept_bytes_per_s")) {
    reader.keys("/kept_bytes_per_s", {"forward", "backward"});
    reader.number("/kept_bytes_per_s/forward", figures.kept_bytes_per_s.forward);
    reader.number("/kept_bytes_per_s/backward", figures.kept_bytes_per_s.backward);
  }
  if (reader.has("/adamw_parameters_per_s"))
    reader.number("/adamw_parameters_per_s", figures.adamw_parameters_per_s);
  if (reader.has("/cross_entropy_logits_per_s"))
    reader.number("/cross_entropy_logits_per_s", figures.cross_entropy_logits_per_s);
}

json to_json(const TransferCost& cost) {
  return {{"latency_s", cost.latency_s}, {"bytes_per_s", cost.bytes_per_s}};
}

json to_json(const std::vector<WidthShare>& all) {
  json shares = json::array();
  for (const WidthShare& share : all)
    shares.push_back(
        {{"width", share.width}, {"forward", share.forward}, {"backward", share.backward}});
  return shares;
}

json to_json(const HeadCost& cost) {
  return {{"block_s", cost.block_s}, {"pair_s", cost.pair_s}, {"pair_dim_s", cost.pair_dim_s}};
}

json to_json(const AttentionCost& cost) {
  return {{"block_rows", cost.block_rows},
          {"forward", to_json(cost.forward)},
          {"backward", to_json(cost.backward)}};
}

}  // namespace

Result<Figures> figures_from_json(const json& object) {
  Figures figures;
  Reader reader(object);
  reader.keys("", {"matmul_flops_per_s", "memory_bytes_per_s", "all_gather", "reduce_scatter",
                   "matmul_shares", "matmul_shares_bfloat16", "attention", "attention_bfloat16",
                   "kept_bytes_per_s", "adamw_parameters_per_s", "cross_entropy_logits_per_s",
                   "window", "disk"});
  if (reader.error().empty()) read_required(reader, figures);
  if (reader.error().empty()) {
    derive_kernel_figures(figures);
    read_optional(reader, figures);
  }
  if (!reader.error().empty()) return fail(ExitCode::kEnvironment, reader.error());
  figures.assumed = false;
  return figures;
}

json to_json(const Figures& figures) {
  return {{"matmul_flops_per_s",
           {{"float32", figures.matmul_float32},
            {"float64", figures.matmul_float64},
            {"bfloat16", figures.matmul_bfloat16}}},
          {"matmul_shares", to_json(figures.matmul_shares)},
          {"matmul_shares_bfloat16", to_json(figures.matmul_shares_bfloat16)},
          {"attention", to_json(figures.attention)},
          {"attention_bfloat16", to_json(figures.attention_bfloat16)},
          {"kept_bytes_per_s",
           {{"forward", figures.kept_bytes_per_s.forward},
            {"backward", figures.kept_bytes_per_s.backward}}},
          {"memory_bytes_per_s", figures.memory_bytes_per_s},
          {"adamw_parameters_per_s", figures.adamw_parameters_per_s},
          {"cross_entropy_logits_per_s", figures.cross_entropy_logits_per_s},
          {"all_gather", to_json(figures.all_gather)},
          {"reduce_scatter", to_json(figures.reduce_scatter)},
          {"window", to_json(figures.window)},
          {"disk",
           {{"read_bytes_per_s", figures.disk.read_bytes_per_s},
            {"write_bytes_per_s", figures.disk.write_bytes_per_s}}}};
}

}  // namespace ptrain::cluster
