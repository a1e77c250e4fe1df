#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/checkpoint/file.h"

namespace ptrain::checkpoint {

// The files of one checkpoint, each opened when first used; a bounded number stays open. Any
// thread.
class OpenFiles {
 public:
  explicit OpenFiles(std::string folder) : folder_(std::move(folder)) {}
  std::shared_ptr<const InFile> get(const std::string& relative);

 private:
  std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const InFile>> files_;
};

}  // namespace ptrain::checkpoint
