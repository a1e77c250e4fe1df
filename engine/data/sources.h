#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/recipe/recipe.h"

namespace ptrain::data {

// A file of documents.
struct SourceFile {
  std::string path;       // without links
  std::int64_t size = 0;  // bytes, > 0
  std::int64_t modified_ns = 0;
  recipe::Format format = recipe::Format::kText;  // never kAuto
  std::size_t source = 0;                         // the entry of data.train or data.validation
  std::string table;                              // megatron: path of the .idx
  std::string silent;                             // megatron: path of the .silent, or empty
  bool operator==(const SourceFile&) const = default;
};

struct Sources {
  std::vector<SourceFile> train;       // in the order of the recipe, each pattern sorted by path
  std::vector<SourceFile> validation;  // only those named as such; they are left out of train
  std::int64_t skipped = 0;            // empty or not regular
};

// The files of data.train and data.validation; a file reached twice counts once. Of contents it
// reads small files of lines only, which count as empty where all lines are blank.
// EngineError: see prepare_index.
Sources find_sources(const recipe::Data& data, const std::string& folder);

}  // namespace ptrain::data
