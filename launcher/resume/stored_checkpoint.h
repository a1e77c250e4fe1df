#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.h"
#include "core/dcp/metadata.h"

namespace ptrain::resume {

// A DCP folder as the launcher sees it, without torch: what is in it, and its small values. The
// data of tensors is for the engine.
class StoredCheckpoint {
 public:
  // Errors (kUnusable): no checkpoint, or one whose `.metadata` is damaged.
  static Result<StoredCheckpoint> open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const dcp::Metadata& metadata() const { return metadata_; }
  bool has(const std::string& key) const;

  // A plain value, or the number in a tensor of one element.
  Result<nlohmann::json> value(const std::string& key) const;

 private:
  std::string folder_;
  dcp::Metadata metadata_;
};

}  // namespace ptrain::resume
