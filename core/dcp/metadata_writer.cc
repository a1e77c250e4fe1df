#include "core/dcp/metadata.h"
#include "core/dcp/pickle_writer.h"

namespace ptrain::dcp {

namespace {

constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata";

// Protocol 2, without storage_meta (whose path class depends on the Python version) and version:
// every PyTorch fills in what is left out.
class Writer {
 public:
  std::vector<std::byte> write(const Metadata& metadata) {
    begin(kModule, "Metadata");
    out_.text("state_dict_metadata");
    entries(metadata);
    out_.text("planner_data");
    paths(metadata.paths);
    out_.text("storage_data");
    storage(metadata);
    end();
    return out_.finish();
  }

 private:
  // An object whose attributes (text, value) follow, until end().
  void begin(std::string_view module, std::string_view name) {
    out_.global(module, name);
    out_.op(Op::kEmptyTuple);
    out_.op(Op::kNewObj);
    open();
  }
  void end() {
    close();
    out_.op(Op::kBuild);
  }
  void open() {
    out_.op(Op::kEmptyDict);
    out_.op(Op::kMark);
  }
  void close() { out_.op(Op::kSetItems); }

  void size(const Sizes& sizes) {
    out_.global("torch", "Size");
    out_.integers(sizes);
    out_.op(Op::kTuple1);
    out_.op(Op::kReduce);
  }

  void entries(const Metadata& metadata) {
    open();
    for (const auto& [key, entry] : metadata.tensors) {
      out_.text(key);
      tensor(entry);
    }
    for (const auto& [key, location] : metadata.values) {
      out_.text(key);
      out_.global(kModule, "BytesStorageMetadata");
      out_.op(Op::kEmptyTuple);
      out_.op(Op::kNewObj);
    }
    close();
  }

  void tensor(const TensorEntry& entry) {
    begin(kModule, "TensorStorageMetadata");
    out_.text("properties");
    properties(entry.dtype);
    out_.text("size");
    size(entry.shape);
    out_.text("chunks");
    out_.op(Op::kEmptyList);
    out_.op(Op::kMark);
    for (const Chunk& chunk : entry.chunks) {
      begin(kModule, "ChunkStorageMetadata");
      out_.text("offsets");
      size(chunk.box.offsets);
      out_.text("sizes");
      size(chunk.box.sizes);
      end();
    }
    out_.op(Op::kAppends);
    end();
  }

  // State: dtype, layout, requires_grad, memory format (0: contiguous), pin_memory.
  void properties(const std::string& dtype) {
    out_.global(kModule, "TensorProperties");
    out_.op(Op::kEmptyTuple);
    out_.op(Op::kNewObj);
    out_.op(Op::kMark);
    out_.global("torch", dtype);
    out_.global("torch.serialization", "_get_layout");
    out_.text("torch.strided");
    out_.op(Op::kTuple1);
    out_.op(Op::kReduce);
    out_.boolean(false);
    out_.global(kModule, "_MEM_FORMAT_ENCODING");
    out_.integer(0);
    out_.op(Op::kTuple1);
    out_.op(Op::kReduce);
    out_.boolean(false);
    out_.op(Op::kTuple);
    out_.op(Op::kBuild);
  }

  void paths(const std::map<std::string, std::vector<std::string>>& paths) {
    open();
    for (const auto& [key, parts] : paths) {
      out_.text(key);
      out_.op(Op::kMark);
      for (const std::string& part : parts) out_.text(part);
      out_.op(Op::kTuple);
    }
    close();
  }

  void storage(const Metadata& metadata) {
    open();
    for (const auto& [key, entry] : metadata.tensors)
      for (std::size_t i = 0; i < entry.chunks.size(); ++i) {
        begin(kModule, "MetadataIndex");
        out_.text("fqn");
        out_.text(key);
        out_.text("offset");
        size(entry.chunks[i].box.offsets);
        out_.text("index");
        out_.integer(static_cast<std::int64_t>(i));
        end();
        location(entry.chunks[i].location);
      }
    for (const auto& [key, place] : metadata.values) {
      begin(kModule, "MetadataIndex");
      out_.text("fqn");
      out_.text(key);
      out_.text("offset");
      out_.op(Op::kNone);
      out_.text("index");
      out_.op(Op::kNone);
      end();
      location(place);
    }
    close();
  }

  void location(const Location& location) {
    begin("torch.distributed.checkpoint.filesystem", "_StorageInfo");
    out_.text("relative_path");
    out_.text(location.file);
    out_.text("offset");
    out_.integer(location.offset);
    out_.text("length");
    out_.integer(location.length);
    end();
  }

  PickleWriter out_;
};

}  // namespace

std::vector<std::byte> write_metadata(const Metadata& metadata) { return Writer().write(metadata); }

}  // namespace ptrain::dcp
