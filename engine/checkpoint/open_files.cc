#include "engine/checkpoint/open_files.h"

#include "engine/checkpoint/folder.h"

namespace ptrain::checkpoint {

namespace {

constexpr std::size_t kMaxOpenFiles = 128;

}  // namespace

std::shared_ptr<const InFile> OpenFiles::get(const std::string& relative) {
  const std::lock_guard lock(mutex_);
  if (const auto found = files_.find(relative); found != files_.end()) return found->second;
  if (files_.size() >= kMaxOpenFiles) files_.clear();
  return files_[relative] = std::make_shared<const InFile>(path_in(folder_, relative));
}

}  // namespace ptrain::checkpoint
