#pragma once

#include "engine/base/fault_points.h"

namespace ptrain::fault {

// One of kPointNames. A name that is not listed there does not compile.
class Point {
 public:
  consteval Point(const char* name) : index_(point_index(name)) {}
  constexpr std::size_t index() const { return index_; }

 private:
  std::size_t index_;
};

// A place where the test build of the engine can kill this rank or its whole run, or make it fail.
// In the shipped module it does nothing (no_faults.cc).
void point(Point place);

// Where the writing of one file to its end can be cut. finish: close, or rename to its name.
struct FilePoints {
  Point create, write, sync, finish;
};

}  // namespace ptrain::fault
