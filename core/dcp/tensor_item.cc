#include <fmt/format.h>

#include <array>

#include "core/dcp/item.h"
#include "core/dcp/pickle.h"
#include "core/dcp/pickle_writer.h"

namespace ptrain::dcp {

namespace {

struct StorageClass {
  std::string_view dtype;
  std::string_view storage;
  std::int64_t size;
};

constexpr std::array kStorages{
    StorageClass{"float32", "FloatStorage", 4}, StorageClass{"float64", "DoubleStorage", 8},
    StorageClass{"float16", "HalfStorage", 2},  StorageClass{"bfloat16", "BFloat16Storage", 2},
    StorageClass{"int64", "LongStorage", 8},    StorageClass{"int32", "IntStorage", 4},
    StorageClass{"int16", "ShortStorage", 2},   StorageClass{"int8", "CharStorage", 1},
    StorageClass{"uint8", "ByteStorage", 1},    StorageClass{"bool", "BoolStorage", 1},
};

tl::unexpected<Error> not_a_tensor(std::string_view why) {
  return fail(ExitCode::kUnusable, fmt::format("not a dense tensor: {}", why));
}

Result<std::vector<std::int64_t>> counts(const Tree& tree, NodeId id) {
  std::vector<std::int64_t> values;
  if (tree.at(id).kind != Kind::kTuple) return not_a_tensor("sizes are missing");
  for (const NodeId item : tree.at(id).items) {
    if (tree.at(item).kind != Kind::kInt || tree.at(item).integer < 0)
      return not_a_tensor("a size is not a count");
    values.push_back(tree.at(item).integer);
  }
  return values;
}

// ('storage', class, key, location, number of elements)
Status read_storage(const Tree& tree, NodeId id, StoredTensor& tensor) {
  const Node& node = tree.at(id);
  if (node.kind != Kind::kPersistentId) return not_a_tensor("its storage is missing");
  const Node& parts = tree.at(node.items[0]);
  if (parts.kind != Kind::kTuple || parts.items.size() < 3)
    return not_a_tensor("its storage is missing");
  const std::string_view name = tree.global_name(parts.items[1]);
  for (const StorageClass& known : kStorages)
    if (known.storage == name) tensor.dtype = known.dtype;
  if (tensor.dtype.empty()) return not_a_tensor("its element type is not supported");
  const Node& key = tree.at(parts.items[2]);
  if (key.kind != Kind::kText) return not_a_tensor("its storage has no name");
  tensor.record.append("data/").append(key.text);
  return {};
}

}  // namespace

std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

std::int64_t size_of_stored(const std::string& dtype) {
  for (const StorageClass& known : kStorages)
    if (known.dtype == dtype) return known.size;
  return 0;
}

Result<StoredTensor> read_tensor(std::span<const std::byte> pickle) {
  PTRAIN_TRY(const Tree tree, read_pickle(pickle));
  const Node& call = tree.at(tree.root);
  if (call.kind != Kind::kObject ||
      !tree.is_global(call.items[0], "torch._utils", "_rebuild_tensor_v2"))
    return not_a_tensor("it is made in an unknown way");
  const Node& arguments = tree.at(call.items[1]);
  if (arguments.kind != Kind::kTuple || arguments.items.size() < 4)
    return not_a_tensor("arguments are missing");
  StoredTensor tensor;
  PTRAIN_CHECK(read_storage(tree, arguments.items[0], tensor));
  const Node& offset = tree.at(arguments.items[1]);
  if (offset.kind != Kind::kInt || offset.integer < 0) return not_a_tensor("a bad offset");
  tensor.offset = offset.integer;
  PTRAIN_TRY(tensor.sizes, counts(tree, arguments.items[2]));
  PTRAIN_TRY(tensor.strides, counts(tree, arguments.items[3]));
  if (tensor.sizes.size() != tensor.strides.size()) return not_a_tensor("sizes and strides differ");
  return tensor;
}

std::vector<std::byte> write_tensor(const std::string& dtype,
                                    const std::vector<std::int64_t>& sizes) {
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) elements *= size;
  PickleWriter out;
  out.global("torch._utils", "_rebuild_tensor_v2");
  out.op(Op::kMark);
  out.op(Op::kMark);
  out.text("storage");
  for (const StorageClass& known : kStorages)
    if (known.dtype == dtype) out.global("torch", known.storage);
  out.text("0");
  out.text("cpu");
  out.integer(elements);
  out.op(Op::kTuple);
  out.op(Op::kBinPersId);
  out.integer(0);
  out.integers(sizes);
  out.integers(row_major_strides(sizes));
  out.boolean(false);
  out.global("collections", "OrderedDict");
  out.op(Op::kEmptyTuple);
  out.op(Op::kReduce);
  out.op(Op::kTuple);
  out.op(Op::kReduce);
  return out.finish();
}

}  // namespace ptrain::dcp
