#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ptrain::supervise {

// Numbers of CPUs as the kernel lists them, "0-3,8"; none of what is no such list.
std::set<int> cpus_in(std::string_view list);

// Looks whether ranks have the cores that the plan gives them, by the CPUs that they say they may
// run on.
class Binding {
 public:
  // `nodes`: of each rank; `threads`: of a rank; `bound`: each is to have cores of its own.
  Binding(std::vector<std::string> nodes, int threads, bool bound);

  // What is not as planned about this rank, seen with those heard before; empty: nothing, or its
  // node was spoken of already.
  std::string hear(int rank, std::string_view cpus);

 private:
  std::string too_few(int rank) const;
  std::string shared(int rank) const;

  std::vector<std::string> nodes_;
  std::vector<std::set<int>> cpus_;  // of each rank; empty: not told
  int threads_;
  bool bound_;
  std::set<std::string> told_;  // of these nodes
};

}  // namespace ptrain::supervise
