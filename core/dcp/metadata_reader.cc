#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/dcp/metadata.h"
#include "core/dcp/pickle.h"

namespace ptrain::dcp {

namespace {

tl::unexpected<Error> bad(std::string message) {
  return fail(ExitCode::kUnusable, "damaged or foreign .metadata: " + message,
              "give a folder that torch.distributed.checkpoint wrote");
}

// Keys and file names end in messages and on terminals.
bool is_printable(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(),
                                       [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

class Reader {
 public:
  explicit Reader(const Tree& tree) : tree_(tree) {}

  Result<Metadata> read() {
    const Node& root = tree_.at(tree_.root);
    if (root.kind != Kind::kObject) return bad("it is not a Metadata object");
    const std::string_view name = tree_.global_name(root.items[0]);
    const std::string_view module = module_of(root.items[0]);
    if ((name != "Metadata" && name != "MCoreMetadata") || module.starts_with("bytecheckpoint"))
      return bad(fmt::format("its class is {}, not Metadata", printable(name)));
    const auto entries = tree_.find(root.items[2], "state_dict_metadata");
    const auto storage = tree_.find(root.items[2], "storage_data");
    if (!entries || !storage) return bad("it lists no tensors or no files");
    PTRAIN_CHECK(read_entries(tree_.at(*entries)));
    PTRAIN_CHECK(read_storage(tree_.at(*storage)));
    PTRAIN_CHECK(check_storage());
    return std::move(metadata_);
  }

 private:
  static std::string printable(std::string_view text) {
    return is_printable(text) ? std::string(text) : "unprintable";
  }

  std::string_view module_of(NodeId id) const {
    const Node& node = tree_.at(id);
    return node.kind == Kind::kGlobal ? tree_.at(node.items[0]).text : std::string_view{};
  }

  Result<NodeId> attribute(NodeId object, std::string_view name) const {
    const Node& node = tree_.at(object);
    if (node.kind == Kind::kObject)
      if (const auto found = tree_.find(node.items[2], name)) return *found;
    return bad(fmt::format("an object has no {}", name));
  }

  Result<std::int64_t> count(NodeId id) const {
    const Node& node = tree_.at(id);
    if (node.kind != Kind::kInt || node.integer < 0) return bad("a size is not a count");
    return node.integer;
  }

  // torch.Size((..)) or a plain tuple or list.
  Result<Sizes> sizes(NodeId id) const {
    const Node* node = &tree_.at(id);
    if (node->kind == Kind::kObject) {
      const Node& arguments = tree_.at(node->items[1]);
      if (arguments.items.size() != 1) return bad("a size has no content");
      node = &tree_.at(arguments.items[0]);
    }
    if (node->kind != Kind::kTuple && node->kind != Kind::kList) return bad("a size is no tuple");
    Sizes values;
    values.reserve(node->items.size());
    for (const NodeId item : node->items) {
      PTRAIN_TRY(const std::int64_t value, count(item));
      values.push_back(value);
    }
    return values;
  }

  Result<std::string> text(NodeId id) const {
    const Node& node = tree_.at(id);
    if (node.kind != Kind::kText || !is_printable(node.text)) return bad("a name is not text");
    return std::string(node.text);
  }

  Status read_entries(const Node& entries) {
    if (entries.kind != Kind::kDict) return bad("its list of tensors is no dict");
    for (std::size_t i = 0; i + 1 < entries.items.size(); i += 2) {
      PTRAIN_TRY(const std::string key, text(entries.items[i]));
      const NodeId id = entries.items[i + 1];
      const Node& entry = tree_.at(id);
      const std::string_view kind =
          entry.kind == Kind::kObject ? tree_.global_name(entry.items[0]) : std::string_view{};
      if (kind == "BytesStorageMetadata")
        metadata_.values[key] = {};
      else if (kind == "TensorStorageMetadata")
        PTRAIN_CHECK(read_tensor_entry(key, id));
      else
        return bad(fmt::format("'{}' is of an unknown class {}", key, printable(kind)));
    }
    return {};
  }

  Status read_tensor_entry(const std::string& key, NodeId id) {
    TensorEntry entry;
    PTRAIN_TRY(const NodeId shape, attribute(id, "size"));
    PTRAIN_TRY(entry.shape, sizes(shape));
    std::int64_t elements = 1;
    for (const std::int64_t size : entry.shape)
      if (__builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements) ||
          elements > std::numeric_limits<std::int64_t>::max() / 16)
        return bad(fmt::format("the shape of '{}' is absurd", key));
    PTRAIN_TRY(const NodeId properties, attribute_or_tuple(id));
    entry.dtype = printable(tree_.global_name(properties));
    PTRAIN_TRY(const NodeId chunks, attribute(id, "chunks"));
    entry.chunks.reserve(tree_.at(chunks).items.size());
    for (const NodeId chunk : tree_.at(chunks).items) {
      PTRAIN_TRY(Box box, read_box(key, entry.shape, chunk));
      entry.chunks.push_back({std::move(box), {}});
    }
    metadata_.tensors[key] = std::move(entry);
    return {};
  }

  // The dtype: first of the properties' state tuple.
  Result<NodeId> attribute_or_tuple(NodeId id) const {
    PTRAIN_TRY(const NodeId properties, attribute(id, "properties"));
    const Node& node = tree_.at(properties);
    if (node.kind != Kind::kObject) return bad("a tensor has no properties");
    const Node& state = tree_.at(node.items[2]);
    if (state.kind == Kind::kTuple && !state.items.empty()) return state.items[0];
    return attribute(properties, "dtype");
  }

  Result<Box> read_box(const std::string& key, const Sizes& shape, NodeId chunk) const {
    PTRAIN_TRY(const NodeId offsets, attribute(chunk, "offsets"));
    PTRAIN_TRY(const NodeId extents, attribute(chunk, "sizes"));
    Box box;
    PTRAIN_TRY(box.offsets, sizes(offsets));
    PTRAIN_TRY(box.sizes, sizes(extents));
    bool inside = box.offsets.size() == shape.size() && box.sizes.size() == shape.size();
    for (std::size_t d = 0; inside && d < shape.size(); ++d)
      inside = box.offsets[d] <= shape[d] && box.sizes[d] <= shape[d] - box.offsets[d];
    if (!inside) return bad(fmt::format("a chunk of '{}' lies outside the tensor", key));
    return box;
  }

  Status read_storage(const Node& storage) {
    if (storage.kind != Kind::kDict) return bad("its list of files is no dict");
    for (std::size_t i = 0; i + 1 < storage.items.size(); i += 2) {
      PTRAIN_TRY(const NodeId name, attribute(storage.items[i], "fqn"));
      PTRAIN_CHECK(turn_to(name));
      PTRAIN_TRY(Location location, read_location(storage.items[i + 1]));
      if (value_ != nullptr)
        *value_ = std::move(location);
      else
        PTRAIN_CHECK(place_chunk(storage.items[i], std::move(location)));
    }
    return {};
  }

  // What the data that follows belongs to. A tensor's chunks come in a row and share one name, so
  // it is looked up once for them all.
  Status turn_to(NodeId name) {
    if (name == name_) return {};
    PTRAIN_TRY(key_, text(name));
    name_ = name;
    const auto value = metadata_.values.find(key_);
    value_ = value == metadata_.values.end() ? nullptr : &value->second;
    const auto tensor = metadata_.tensors.find(key_);
    chunks_ = tensor == metadata_.tensors.end() ? nullptr : &tensor->second.chunks;
    if (value_ == nullptr && chunks_ == nullptr)
      return bad(fmt::format("the data of '{}' belongs to nothing", key_));
    return {};
  }

  Result<Location> read_location(NodeId id) const {
    Location location;
    PTRAIN_TRY(const NodeId file, attribute(id, "relative_path"));
    PTRAIN_TRY(location.file, text(file));
    if (!is_confined(location.file))
      return bad(fmt::format("the file '{}' lies outside the checkpoint", location.file));
    PTRAIN_TRY(const NodeId offset, attribute(id, "offset"));
    PTRAIN_TRY(location.offset, count(offset));
    PTRAIN_TRY(const NodeId length, attribute(id, "length"));
    PTRAIN_TRY(location.length, count(length));
    if (location.length > std::numeric_limits<std::int64_t>::max() - location.offset)
      return bad("an item's place is absurd");
    const auto transforms = tree_.find(tree_.at(id).items[2], "transform_descriptors");
    location.transformed = transforms && !tree_.at(*transforms).items.empty();
    return location;
  }

  Status place_chunk(NodeId index, Location location) {
    PTRAIN_TRY(const NodeId place, attribute(index, "offset"));
    PTRAIN_TRY(const Sizes offsets, sizes(place));
    if (const auto hint = tree_.find(tree_.at(index).items[2], "index")) {
      const auto at = static_cast<std::size_t>(tree_.at(*hint).integer);
      if (at < chunks_->size() && (*chunks_)[at].box.offsets == offsets) {
        (*chunks_)[at].location = std::move(location);
        return {};
      }
    }
    std::map<Sizes, std::size_t>& by_offset = chunk_at_[key_];
    if (by_offset.empty())
      for (std::size_t i = 0; i < chunks_->size(); ++i) by_offset[(*chunks_)[i].box.offsets] = i;
    const auto found = by_offset.find(offsets);
    if (found == by_offset.end())
      return bad(fmt::format("the data of '{}' belongs to no chunk", key_));
    (*chunks_)[found->second].location = std::move(location);
    return {};
  }

  Status check_storage() {
    for (const auto& [key, location] : metadata_.values)
      if (location.file.empty()) return bad(fmt::format("the data of '{}' is missing", key));
    for (auto& [key, entry] : metadata_.tensors) {
      std::erase_if(entry.chunks, [](const Chunk& chunk) { return volume(chunk.box.sizes) == 0; });
      for (const Chunk& chunk : entry.chunks)
        if (chunk.location.file.empty())
          return bad(fmt::format("the data of a chunk of '{}' is missing", key));
    }
    return {};
  }

  const Tree& tree_;
  Metadata metadata_;
  NodeId name_ = ~NodeId{0};  // of no node
  std::string key_;
  Location* value_ = nullptr;
  std::vector<Chunk>* chunks_ = nullptr;
  std::map<std::string, std::map<Sizes, std::size_t>> chunk_at_;
};

}  // namespace

bool is_confined(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != path.npos) return false;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return true;
}

Result<Metadata> read_metadata(std::span<const std::byte> bytes) {
  PTRAIN_TRY(const Tree tree, read_pickle(bytes));
  return Reader(tree).read();
}

}  // namespace ptrain::dcp
