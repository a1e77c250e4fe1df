#pragma once

#include <filesystem>
#include <string>

namespace ptrain::checkpoint {

// A new folder that appears whole or not at all: it is filled beside its place under another name,
// and renamed at the end. What a draft of the same folder left behind that was killed is removed.
class DraftFolder {
 public:
  // EngineErrors: kUsage where `target` is there already; kUnusable where it cannot be made.
  explicit DraftFolder(const std::string& target);
  ~DraftFolder();  // removes what was not published
  DraftFolder(const DraftFolder&) = delete;
  DraftFolder& operator=(const DraftFolder&) = delete;

  std::string file(const std::string& name) const { return path_ / name; }
  void publish() const;

 private:
  void remove_leftovers() const;
  bool put_in_place() const;
  [[noreturn]] void refuse_existing() const;

  std::filesystem::path target_, path_;
  int lock_ = -1;  // held as long as somebody fills the folder
};

}  // namespace ptrain::checkpoint
