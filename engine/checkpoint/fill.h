#pragma once

#include <map>
#include <string>

#include "core/dcp/metadata.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/item.h"
#include "engine/checkpoint/stored_item.h"

namespace ptrain::checkpoint {

// The files of one checkpoint, each opened when first used; a bounded number stays open.
class OpenFiles {
 public:
  explicit OpenFiles(std::string folder) : folder_(std::move(folder)) {}
  // Valid until the next call.
  const InFile& get(const std::string& relative);

 private:
  std::string folder_;
  std::map<std::string, InFile> files_;
};

// Fills one run of a tensor from the stored chunks that it touches, reading only the bytes it needs
// (and small gaps between them). EngineError when an element is nowhere, or in two places with
// different values.
void fill(const TensorItem& item, const dcp::TensorEntry& entry, OpenFiles& files);

}  // namespace ptrain::checkpoint
