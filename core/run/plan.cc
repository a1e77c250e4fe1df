#include "core/run/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "core/program/compile.h"
#include "core/recipe/json.h"
#include "core/run/json_fields.h"

namespace ptrain::run {

namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr int kMostThreads = 4096;    // of one rank: more than any machine has cores
constexpr double kLongestStep = 1e9;  // seconds

json json_of(const RankPlace& place) {
  return {{"rank", place.rank}, {"node", place.node}, {"slot", place.slot}, {"gpu", place.gpu}};
}

json words_of(const std::vector<recipe::Recompute>& all) {
  json words = json::array();
  for (const recipe::Recompute one : all) words.push_back(recipe::to_string(one));
  return words;
}

json json_of(const mesh::Layout& layout) {
  json object = {{"dp", layout.dp},
                 {"shard", layout.shard},
                 {"cp", layout.cp},
                 {"tp", layout.tp},
                 {"pp", layout.pp},
                 {"ulysses", layout.ulysses},
                 {"virtual", layout.num_virtual},
                 {"schedule", layout.schedule},
                 {"schedule_csv", layout.schedule_csv},
                 {"stage_layers", layout.stage_layers},
                 {"ep", layout.ep},
                 {"etp", layout.etp},
                 {"zero", layout.zero},
                 {"micro_batch", layout.micro_batch},
                 {"num_micro_batches", layout.num_micro_batches},
                 {"recompute", recipe::to_string(layout.recompute)},
                 {"prefetch", layout.prefetch},
                 {"offload", layout.offload == recipe::Offload::kOptimizer ? "optimizer" : "none"},
                 {"shared_window", layout.shared_window}};
  if (layout.spread_embedding) object["spread_embedding"] = true;
  if (layout.spread_head) object["spread_head"] = true;
  if (!layout.stage_recompute.empty()) object["stage_recompute"] = words_of(layout.stage_recompute);
  for (const DType dtype : layout.layer_dtypes) object["layer_dtypes"].push_back(name_of(dtype));
  return object;
}

json json_of(const program::BytesByClass& bytes) {
  json result = json::object();
  for (int i = 0; i < program::kNumMemoryClasses; ++i)
    result[program::to_string(static_cast<program::MemoryClass>(i))] =
        bytes[static_cast<std::size_t>(i)].value;
  return result;
}

json json_of(const Prediction& p) {
  json classes = json::array();
  for (const auto& one : p.classes)
    classes.push_back(
        {{"count", one.count}, {"program_hash", one.program_hash}, {"bytes", json_of(one.bytes)}});
  return {{"step_s", number(p.step_s)},
          {"low_s", number(p.low_s)},
          {"high_s", number(p.high_s)},
          {"tokens_per_s", number(p.tokens_per_s)},
          {"mfu", number(p.mfu)},
          {"bubble", number(p.bubble)},
          {"exposed_s", number(p.exposed_s)},
          {"classes", std::move(classes)}};
}

json json_of(const ShapePlan& shape) {
  json rejected = json::array();
  for (const auto& one : shape.rejected)
    rejected.push_back({{"reason", one.reason}, {"count", one.count}, {"nearest", one.nearest}});
  return {{"name", shape.name},
          {"layout", json_of(shape.layout)},
          {"threads", shape.threads},
          {"predicted", json_of(shape.predicted)},
          {"rejected", std::move(rejected)}};
}

json json_of(const Origin& origin) {
  return {{"checkpoint", origin.checkpoint},
          {"step", origin.step},
          {"tokens", origin.tokens},
          {"optimizer", origin.optimizer},
          {"data", origin.data}};
}

Result<Origin> read_origin(const json& object) {
  Origin origin;
  FieldReader reader(object, "plan: origin");
  reader.get("checkpoint", origin.checkpoint).get("step", origin.step);
  reader.get("tokens", origin.tokens).get("optimizer", origin.optimizer);
  reader.get("data", origin.data);
  if (origin.step < 0 || origin.tokens < 0) reader.refuse("step or tokens is below 0");
  PTRAIN_CHECK(reader.status());
  return origin;
}

// `expected`: places stand in the order of ranks.
Result<RankPlace> read_place(const json& object, int expected) {
  RankPlace place;
  FieldReader reader(object, "plan: ranks");
  reader.get("rank", place.rank).get("node", place.node).get("slot", place.slot);
  reader.get("gpu", place.gpu);
  if (place.rank != expected)
    reader.refuse(fmt::format("rank {} stands where {} belongs", place.rank, expected));
  if (place.slot < 0 || place.gpu < -1)
    reader.refuse(
        fmt::format("rank {} has slot {} and gpu {}; allowed: 0 and more, and -1 (none) "
                    "and more",
                    place.rank, place.slot, place.gpu));
  PTRAIN_CHECK(reader.status());
  return place;
}

// Plans of versions that had neither say nothing of them.
void read_stages_and_experts(const json& object, FieldReader& reader, mesh::Layout& layout) {
  if (!object.contains("schedule")) return;
  reader.get("ulysses", layout.ulysses).get("virtual", layout.num_virtual);
  reader.get("schedule", layout.schedule).get("schedule_csv", layout.schedule_csv);
  reader.get("ep", layout.ep).get("etp", layout.etp);
  for (const json& count : reader.array("stage_layers")) {
    if (!count.is_number_integer() || count < 1 || count > 1 << 20)
      return reader.refuse("stage_layers holds something else than numbers of layers");
    layout.stage_layers.push_back(count.get<int>());
  }
  // Plans of layouts, or versions, without them do not name these.
  if (object.contains("spread_embedding")) reader.get("spread_embedding", layout.spread_embedding);
  if (object.contains("spread_head")) reader.get("spread_head", layout.spread_head);
  if (!object.contains("stage_recompute")) return;
  for (const json& word : reader.array("stage_recompute")) {
    const auto known = word.is_string() ? recipe::recompute_named(word.get<std::string>())
                                        : std::optional<recipe::Recompute>();
    if (!known) return reader.refuse("stage_recompute has other words than none, selective, full");
    layout.stage_recompute.push_back(*known);
  }
}

void read_layer_dtypes(const json& object, FieldReader& reader, mesh::Layout& layout) {
  if (!object.contains("layer_dtypes")) return;
  for (const json& word : reader.array("layer_dtypes")) {
    const bool narrow = word == name_of(DType::kBFloat16);
    if (!narrow && word != name_of(DType::kFloat32))
      return reader.refuse("layer_dtypes has other words than float32 and bfloat16");
    layout.layer_dtypes.push_back(narrow ? DType::kBFloat16 : DType::kFloat32);
  }
}

Result<mesh::Layout> read_layout(const json& object) {
  mesh::Layout layout;
  std::string recompute, offload = "none";
  FieldReader reader(object, "plan: layout");
  reader.get("dp", layout.dp).get("shard", layout.shard).get("cp", layout.cp);
  reader.get("tp", layout.tp).get("pp", layout.pp).get("zero", layout.zero);
  reader.get("micro_batch", layout.micro_batch);
  reader.get("num_micro_batches", layout.num_micro_batches);
  reader.get("recompute", recompute).get("prefetch", layout.prefetch);
  reader.get("shared_window", layout.shared_window);
  read_stages_and_experts(object, reader, layout);
  read_layer_dtypes(object, reader, layout);
  // Plans of versions that could not offload say nothing of it.
  if (object.contains("offload")) reader.get("offload", offload);
  if (offload != "none" && offload != "optimizer")
    reader.refuse(fmt::format("offload is '{}': none or optimizer", offload));
  const auto known = recipe::recompute_named(recompute);
  if (!known) reader.refuse(fmt::format("recompute is '{}': none, selective or full", recompute));
  PTRAIN_CHECK(reader.status());
  PTRAIN_CHECK(program::check_layout(layout));
  layout.recompute = *known;
  if (offload == "optimizer") layout.offload = recipe::Offload::kOptimizer;
  return layout;
}

Result<ClassPrediction> read_class(const json& object) {
  ClassPrediction result;
  FieldReader reader(object, "plan: classes");
  reader.get("count", result.count).get("program_hash", result.program_hash);
  const json& bytes = reader.object("bytes");
  PTRAIN_CHECK(reader.status());
  FieldReader sizes(bytes, "plan: bytes");
  for (int i = 0; i < program::kNumMemoryClasses; ++i) {
    const std::string name(program::to_string(static_cast<program::MemoryClass>(i)));
    std::int64_t& value = result.bytes[static_cast<std::size_t>(i)].value;
    sizes.get(name.c_str(), value);
    if (value < 0) sizes.refuse(fmt::format("{} is {}, below 0", name, value));
  }
  PTRAIN_CHECK(sizes.status());
  return result;
}

Result<Prediction> read_prediction(const json& object) {
  Prediction p;
  FieldReader reader(object, "plan: predicted");
  reader.get("step_s", p.step_s).get("low_s", p.low_s).get("high_s", p.high_s);
  reader.get("tokens_per_s", p.tokens_per_s).get("mfu", p.mfu).get("bubble", p.bubble);
  const json& classes = reader.get("exposed_s", p.exposed_s).array("classes");
  // Hangs are told by it: a step that takes for ever would switch that off.
  if (!(p.step_s >= 0 && p.step_s <= kLongestStep))
    reader.refuse(fmt::format("step_s is {}; allowed: 0 to {}", p.step_s, kLongestStep));
  PTRAIN_CHECK(reader.status());
  for (const auto& item : classes) {
    PTRAIN_TRY(ClassPrediction one, read_class(item));
    p.classes.push_back(std::move(one));
  }
  return p;
}

Result<Rejection> read_rejection(const json& object) {
  Rejection rejection;
  FieldReader reader(object, "plan: rejected");
  reader.get("reason", rejection.reason).get("count", rejection.count);
  reader.get("nearest", rejection.nearest);
  PTRAIN_CHECK(reader.status());
  return rejection;
}

Result<ShapePlan> read_shape(const json& object) {
  ShapePlan shape;
  FieldReader reader(object, "plan: shapes");
  const json& layout = reader.get("name", shape.name).object("layout");
  const json& predicted = reader.get("threads", shape.threads).object("predicted");
  const json& rejected = reader.array("rejected");
  if (shape.threads < 1 || shape.threads > kMostThreads)
    reader.refuse(fmt::format("threads of '{}' is {}; allowed: 1 to {}", shape.name, shape.threads,
                              kMostThreads));
  PTRAIN_CHECK(reader.status());
  PTRAIN_TRY(shape.layout, read_layout(layout).map_error([&](Error error) {
    error.message = fmt::format("plan: shape '{}': {}", shape.name, error.message);
    return error;
  }));
  PTRAIN_TRY(shape.predicted, read_prediction(predicted));
  for (const auto& item : rejected) {
    PTRAIN_TRY(Rejection one, read_rejection(item));
    shape.rejected.push_back(std::move(one));
  }
  return shape;
}

Status read_lists(const json& ranks, const json& shapes, Plan& plan) {
  for (const auto& item : ranks) {
    PTRAIN_TRY(RankPlace place, read_place(item, static_cast<int>(plan.ranks.size())));
    plan.ranks.push_back(std::move(place));
  }
  for (const auto& item : shapes) {
    PTRAIN_TRY(ShapePlan shape, read_shape(item));
    plan.shapes.push_back(std::move(shape));
  }
  return {};
}

// In floating point: the product of numbers from a file may be too large for an integer.
double batch_tokens(const mesh::Layout& layout, std::int64_t sequence) {
  return static_cast<double>(sequence) * layout.num_data_ranks() *
         static_cast<double>(layout.micro_batch) * static_cast<double>(layout.num_micro_batches);
}

// A plan that somebody edited: its parts must fit each other before ranks are started on it.
Status check_shapes(const Plan& plan) {
  const auto refuse = [](std::string why) {
    return fail(ExitCode::kUsage, "plan: shapes: " + std::move(why));
  };
  const auto& wanted = plan.recipe.shapes;
  if (plan.shapes.size() != wanted.size() || wanted.empty())
    return refuse(fmt::format("there are {}, but the plan's recipe has {}", plan.shapes.size(),
                              wanted.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const ShapePlan& shape = plan.shapes[i];
    if (shape.name != wanted[i].name)
      return refuse(
          fmt::format("'{}' stands where the recipe has '{}'", shape.name, wanted[i].name));
    if (std::cmp_not_equal(shape.layout.num_ranks(), plan.ranks.size()))
      return refuse(fmt::format("the layout of '{}' has {} ranks, but the plan places {}",
                                shape.name, shape.layout.num_ranks(), plan.ranks.size()));
    const double tokens = batch_tokens(shape.layout, wanted[i].sequence);
    if (tokens != static_cast<double>(wanted[i].global_batch_tokens))
      return refuse(fmt::format("a step of '{}' has {:.0f} tokens, but global_batch_tokens is {}",
                                shape.name, tokens, wanted[i].global_batch_tokens));
  }
  return {};
}

}  // namespace

int num_nodes(const Plan& plan) {
  std::set<std::string_view> names;
  for (const RankPlace& place : plan.ranks) names.insert(place.node);
  return std::max(1, static_cast<int>(names.size()));
}

json to_json(const Plan& plan) {
  json ranks = json::array(), shapes = json::array();
  for (const auto& place : plan.ranks) ranks.push_back(json_of(place));
  for (const auto& shape : plan.shapes) shapes.push_back(json_of(shape));
  json out = {{"version", plan.version},
              {"build", plan.build},
              {"recipe_hash", plan.recipe_hash},
              {"recipe", recipe::to_json(plan.recipe)},
              {"recipe_folder", plan.recipe_folder},
              {"cluster", plan.cluster},
              {"peak_flops_per_rank", number(plan.peak_flops_per_rank)},
              {"ranks", std::move(ranks)},
              {"shapes", std::move(shapes)}};
  if (!plan.origin.checkpoint.empty()) out["origin"] = json_of(plan.origin);
  return out;
}

Result<Plan> plan_from_json(const json& object) {
  Plan plan;
  FieldReader reader(object, "plan");
  reader.get("version", plan.version);
  if (plan.version != kVersion)
    reader.refuse(fmt::format("version {} is not {}", plan.version, kVersion));
  reader.get("build", plan.build).get("recipe_hash", plan.recipe_hash);
  const json& recipe = reader.object("recipe");
  reader.get("recipe_folder", plan.recipe_folder).get("cluster", plan.cluster);
  reader.get("peak_flops_per_rank", plan.peak_flops_per_rank);
  const json& ranks = reader.array("ranks");
  const json& shapes = reader.array("shapes");
  PTRAIN_CHECK(reader.status());
  PTRAIN_TRY(plan.recipe, recipe::from_json(recipe));
  PTRAIN_CHECK(read_lists(ranks, shapes, plan));
  PTRAIN_CHECK(check_shapes(plan));
  if (object.contains("origin")) {
    PTRAIN_TRY(plan.origin, read_origin(object["origin"]));
  }
  return plan;
}

std::string to_text(const Plan& plan) {
  return to_json(plan).dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<Plan> plan_from_text(std::string_view text) {
  return parse_json(text, "the plan").and_then(plan_from_json);
}

}  // namespace ptrain::run
