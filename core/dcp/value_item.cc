#include <fmt/format.h>

#include "core/dcp/item.h"
#include "core/dcp/pickle.h"
#include "core/dcp/pickle_writer.h"

namespace ptrain::dcp {

namespace {

using Json = nlohmann::json;

// A small pickle can share one list a thousand times a thousand times: the copy is what must be
// bounded.
constexpr std::size_t kMaxValues = std::size_t{1} << 22;

tl::unexpected<Error> not_plain(std::string_view what) {
  return fail(ExitCode::kUnusable, fmt::format("not a plain value: it holds {}", what));
}

class ToJson {
 public:
  explicit ToJson(const Tree& tree) : tree_(tree) {}

  Result<Json> convert(NodeId id) {
    if (++count_ > kMaxValues) return not_plain("too many values");
    const Node& node = tree_.at(id);
    switch (node.kind) {
      case Kind::kNone:
        return Json();
      case Kind::kBool:
        return Json(node.integer != 0);
      case Kind::kInt:
        return Json(node.integer);
      case Kind::kBigInt:
        return big(node.text);
      case Kind::kFloat:
        return Json(node.real());
      case Kind::kText:
        return Json(std::string(node.text));
      case Kind::kTuple:
      case Kind::kList:
        return list(node);
      case Kind::kDict:
        return dict(node);
      case Kind::kObject:
        return object(node);
      default:
        return not_plain("bytes, a set or a class");
    }
  }

 private:
  static Result<Json> big(std::string_view digits) {
    if (digits.size() != 9 || digits[8] != 0) return not_plain("an integer beyond 64 bits");
    std::uint64_t value = 0;
    for (std::size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(digits[i]);
    return Json(value);
  }

  Result<Json> list(const Node& node) {
    Json values = Json::array();
    for (const NodeId item : node.items) {
      PTRAIN_TRY(Json value, convert(item));
      values.push_back(std::move(value));
    }
    return values;
  }

  Result<Json> dict(const Node& node) {
    Json values = Json::object();
    for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const Node& key = tree_.at(node.items[i]);
      if (key.kind != Kind::kText) return not_plain("a dict whose keys are not text");
      PTRAIN_TRY(Json value, convert(node.items[i + 1]));
      values[std::string(key.text)] = std::move(value);
    }
    return values;
  }

  Result<Json> object(const Node& node) {
    if (!tree_.is_global(node.items[0], "collections", "OrderedDict"))
      return not_plain(fmt::format("an object of class '{}'", tree_.global_name(node.items[0])));
    if (node.items[3] == kNoneNode) return Json::object();
    return convert(node.items[3]);
  }

  const Tree& tree_;
  std::size_t count_ = 0;
};

void put(const Json& value, PickleWriter& out);

void put_list(const Json& value, PickleWriter& out) {
  out.op(Op::kEmptyList);
  out.op(Op::kMark);
  for (const Json& item : value) put(item, out);
  out.op(Op::kAppends);
}

void put_dict(const Json& value, PickleWriter& out) {
  out.op(Op::kEmptyDict);
  out.op(Op::kMark);
  for (const auto& [key, item] : value.items()) {
    out.text(key);
    put(item, out);
  }
  out.op(Op::kSetItems);
}

void put(const Json& value, PickleWriter& out) {
  switch (value.type()) {
    case Json::value_t::boolean:
      return out.boolean(value.get<bool>());
    case Json::value_t::number_integer:
      return out.integer(value.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return out.big_integer(value.get<std::uint64_t>());
    case Json::value_t::number_float:
      return out.real(value.get<double>());
    case Json::value_t::string:
      return out.text(value.get_ref<const std::string&>());
    case Json::value_t::array:
      return put_list(value, out);
    case Json::value_t::object:
      return put_dict(value, out);
    default:
      return out.op(Op::kNone);
  }
}

}  // namespace

Result<Json> read_value(std::span<const std::byte> pickle) {
  PTRAIN_TRY(const Tree tree, read_pickle(pickle));
  return ToJson(tree).convert(tree.root);
}

std::vector<std::byte> write_value(const Json& value) {
  PickleWriter out;
  put(value, out);
  return out.finish();
}

}  // namespace ptrain::dcp
