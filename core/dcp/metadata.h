#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/dcp/boxes.h"

namespace ptrain::dcp {

// Where the archive of one item lies. The file is a path below the checkpoint's folder, never
// outside.
struct Location {
  std::string file;
  std::int64_t offset = 0;
  std::int64_t length = 0;
  bool transformed = false;  // compressed or the like: not readable here
  bool operator==(const Location&) const = default;
};

struct Chunk {
  Box box;
  Location location;
  bool operator==(const Chunk&) const = default;
};

struct TensorEntry {
  std::string dtype;  // PyTorch's name; each item says it again and is believed
  Sizes shape;
  std::vector<Chunk> chunks;  // those that hold elements
  bool operator==(const TensorEntry&) const = default;
};

// The content of `.metadata`.
struct Metadata {
  std::map<std::string, TensorEntry> tensors;
  std::map<std::string, Location> values;
  // How keys nest when the state is given back as dicts: model.a.b -> model, a.b. Written, not
  // read.
  std::map<std::string, std::vector<std::string>> paths;
};

// Understands what PyTorch 2.0 to 2.14 and Megatron-Core write; classes that are not needed are
// skipped unread.
Result<Metadata> read_metadata(std::span<const std::byte> bytes);
std::vector<std::byte> write_metadata(const Metadata& metadata);

// A relative path without "..", which therefore stays below its folder (but for symbolic links).
bool is_confined(std::string_view path);

}  // namespace ptrain::dcp
