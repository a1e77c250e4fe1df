#include "tests/random/case.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>
#include <variant>
#include <vector>

namespace ptrain::random {
namespace {

struct Field {
  std::string_view name;
  std::variant<std::int64_t Case::*, std::string Case::*> member;
  bool of_layout = false;
};

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {"family", &Case::family},
      {"layers", &Case::layers},
      {"hidden", &Case::hidden},
      {"ffn", &Case::ffn},
      {"heads", &Case::heads},
      {"kv_heads", &Case::kv_heads},
      {"head_dim", &Case::head_dim},
      {"vocab", &Case::vocab},
      {"tied", &Case::tied},
      {"experts", &Case::experts},
      {"topk", &Case::topk},
      {"expert_ffn", &Case::expert_ffn},
      {"capacity_percent", &Case::capacity_percent},
      {"sequence", &Case::sequence},
      {"rows", &Case::rows},
      {"packing", &Case::packing},
      {"optimizer", &Case::optimizer},
      {"precision", &Case::precision},
      {"steps", &Case::steps},
      {"seed", &Case::seed},
      {"dp", &Case::dp, true},
      {"shard", &Case::shard, true},
      {"zero", &Case::zero, true},
      {"ring", &Case::ring, true},
      {"ulysses", &Case::ulysses, true},
      {"tp", &Case::tp, true},
      {"ep", &Case::ep, true},
      {"etp", &Case::etp, true},
      {"pp", &Case::pp, true},
      {"virtual", &Case::num_virtual, true},
      {"schedule", &Case::schedule, true},
      {"stages", &Case::stages, true},
      {"spread_embedding", &Case::spread_embedding, true},
      {"spread_head", &Case::spread_head, true},
      {"micro_batch", &Case::micro_batch, true},
      {"recompute", &Case::recompute, true},
      {"stage_recompute", &Case::stage_recompute, true},
      {"stage_dtype", &Case::stage_dtype, true},
      {"offload", &Case::offload, true},
      {"prefetch", &Case::prefetch, true},
      {"window", &Case::window, true},
  };
  return all;
}

std::string value_of(const Case& one, const Field& field) {
  return std::visit([&](auto member) { return fmt::format("{}", one.*member); }, field.member);
}

void reset(Case& one, const Field& field) {
  std::visit([&](auto member) { one.*member = Case().*member; }, field.member);
}

bool set(Case& one, const Field& field, const std::string& value) {
  if (const auto* word = std::get_if<std::string Case::*>(&field.member)) {
    one.** word = value;
    return true;
  }
  const char* end = value.data() + value.size();
  auto& number = one.*std::get<std::int64_t Case::*>(field.member);
  const auto [next, error] = std::from_chars(value.data(), end, number);
  return error == std::errc() && next == end;
}

}  // namespace

std::string to_text(const Case& one) {
  std::string text;
  for (const Field& field : fields())
    if (const std::string value = value_of(one, field); value != value_of(Case(), field))
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", field.name, value);
  return text;
}

Result<Case> from_text(const std::string& text) {
  Case one;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    bool known = false;
    for (const Field& field : fields())
      if (equals != std::string::npos && word.substr(0, equals) == field.name)
        known = set(one, field, word.substr(equals + 1));
    if (!known)
      return fail(ExitCode::kUsage, fmt::format("'{}' is no FIELD=VALUE of a case", word));
  }
  return one;
}

std::string problem_of(const Case& one) {
  Case problem = one;
  for (const Field& field : fields())
    if (field.of_layout) reset(problem, field);
  return to_text(problem);
}

std::vector<Case> plainer(const Case& one) {
  std::vector<Case> all;
  const auto add = [&](const Case& other) {
    if (!(other == one)) all.push_back(other);
  };
  for (const Field& field : fields()) {
    Case other = one;
    reset(other, field);
    add(other);
    const auto* number = std::get_if<std::int64_t Case::*>(&field.member);
    if (number == nullptr) continue;
    for (const std::int64_t smaller : {one.**number / 2, one.**number - 1}) {
      other.** number = smaller;
      if (smaller > Case().**number) add(other);
    }
  }
  if (one.pp > 1 && one.num_virtual == 1) {
    Case other = one;
    other.schedule = "gpipe";
    add(other);
  }
  return all;
}

}  // namespace ptrain::random
