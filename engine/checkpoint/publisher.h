#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/rank_file.h"

namespace ptrain::checkpoint {

// The first rank's part of a save: the folder under its temporary name, and then in its place.
class Publisher {
 public:
  explicit Publisher(const std::string& folder);

  const std::string& temporary() const { return temporary_; }
  // An empty folder under the temporary name.
  void prepare() const;
  // The files of all ranks are in it, durably.
  void publish(std::vector<RankFile> files) const;
  void discard() const;

 private:
  void write_lists(std::vector<RankFile> files) const;
  void put_in_place() const;

  std::string folder_;
  std::string temporary_;
};

}  // namespace ptrain::checkpoint
