#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/bounds.h"
#include "launcher/plan/enumerate.h"

namespace ptrain::plan {

// A layout with its choices up to a level, which stands for all that begin so.
struct PartialLayout {
  double least = 0;  // of what is sought: weighed seconds, or bytes
  Level level = Level::kNone;
  mesh::Layout layout;
  std::int64_t bytes = 0;                            // of a rank, at least
  bool operator<(const PartialLayout& other) const;  // the last is taken first
};

// What the searches of one input go over: its layouts, with or without offloading, and their
// bounds.
class SearchSpace {
 public:
  // The input must outlive it.
  SearchSpace(const SearchInput& input, recipe::Offload offload);
  SearchSpace(const SearchSpace&) = delete;

  PartialLayout start() const { return {.layout = without_axes(space_)}; }
  // Makes the choices of the next level.
  Enumeration next(const PartialLayout& partial);
  Bounds& bounds() { return bounds_; }
  std::int64_t memory() const { return memory_; }  // of a rank

  // Why a layout's schedule cannot be, which takes the whole order to find out.
  std::optional<Objection> objection_to_schedule(const mesh::Layout& layout) const;

  // Simulates one layout, or only counts its bytes where these are more than `memory`.
  Result<Candidate> simulate(const mesh::Layout& layout, std::int64_t memory);
  // Of a layout, which live until others are asked for. Errors: those of plan::parts_of.
  Result<const std::vector<Part>*> parts_for(const mesh::Layout& layout);

  // What all of it took, in the unit of kMostWork.
  std::int64_t work() const { return work_ + bounds_.work(); }

 private:
  const SearchInput& input_;
  const std::int64_t memory_;
  Cuts cuts_;
  std::map<int, std::vector<int>> balanced_;
  Space space_;
  Bounds bounds_;
  std::map<std::string, std::vector<Part>> parts_;
  std::int64_t work_ = 0;  // but for bounds
};

}  // namespace ptrain::plan
