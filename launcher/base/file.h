#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ptrain {

// The whole of a regular file of at most `most_bytes`; errors (kUsage) name path and cause.
Result<std::string> read_file(const std::string& path, std::size_t most_bytes);

// Writes the file, for its owner alone, so that a reader sees the old text or the new one and
// nothing between: even after a loss of power, or, without waiting for the disk, only until then.
enum class Lasts { kForGood, kUntilPowerFails };
Status publish_file(const std::string& path, std::string_view text, Lasts lasts = Lasts::kForGood);

bool is_regular_file(const std::string& path);

// Absolute, without `.` and `..`; symbolic links stay as they are.
std::string absolute_path(const std::string& path);

// The nearest folder above the running program that holds `relative`, with it; "" when none does.
std::string installed_path(std::string_view relative);

}  // namespace ptrain
