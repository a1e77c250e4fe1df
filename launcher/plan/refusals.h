#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "launcher/plan/enumerate.h"
#include "launcher/plan/parts.h"
#include "launcher/plan/search.h"

namespace ptrain::plan {

// Why legal layouts cannot run on the machines of an input.

// Bytes of a rank and of its memory. `is_bound`: it needs so much at least.
Rejected too_large(const mesh::Layout& layout, std::int64_t bytes, std::int64_t memory,
                   bool is_bound);

// Of `parts`: more state is offloaded than the host's memory takes; for plans on GPUs.
std::optional<Rejected> waits_too_much(const SearchInput& input, const mesh::Layout& layout,
                                       std::span<const Part> parts);

// What compiling a plan may take, in the unit of kMostWork. Longer programs would fill the memory
// of their ranks too.
inline constexpr std::int64_t kMostCompiled = 12'000'000;
std::optional<Rejected> too_long(const mesh::Layout& layout, std::int64_t work_to_compile);

}  // namespace ptrain::plan
