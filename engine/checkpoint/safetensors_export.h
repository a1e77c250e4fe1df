#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/tokenizer_files.h"

namespace ptrain::checkpoint {

class Source;

struct ExportTarget {
  std::string folder;              // must not be there yet
  std::string dtype = "fp32";      // fp32, bf16 or fp16
  std::int64_t shard_bytes = 0;    // of the tensors in one file; a larger tensor has its own
  std::string recipe_folder = {};  // where a relative path in the recipe starts; empty: not known
};

struct Exported {
  std::vector<TokenizerFile> copied;
  std::string note;  // what the user should know; may be empty
};

// Writes a checkpoint of ptrain as a Hugging Face folder, which transformers loads: config.json,
// model.safetensors or shards with their index, and the tokenizer's files. Under
// another name first, synced, then renamed. EngineErrors: kUsage where the folder is there or a
// value does not fit the dtype; kUnusable where the checkpoint does not tell its model or the
// folder cannot be written. Nothing is left then.
Exported export_checkpoint(const Source& source, const ExportTarget& target);

}  // namespace ptrain::checkpoint
