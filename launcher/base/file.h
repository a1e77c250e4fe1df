#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ptrain {

// The whole of a regular file of at most `most_bytes`; errors (kUsage) name path and cause.
Result<std::string> read_file(const std::string& path, std::size_t most_bytes);

// The hash of such a file of at most 1 GiB, as hash128_hex has it.
Result<std::string> hash_of_file(const std::string& path);

// `num_bytes` of a file from `offset` on; errors (kUnusable) name path and cause.
Result<std::string> read_part(const std::string& path, std::int64_t offset, std::int64_t num_bytes);

// Writes the file, for its owner alone, so that a reader sees the old text or the new one and
// nothing between: even after a loss of power, or, without waiting for the disk, only until then.
// Errors (kEnvironment) name path and cause.
enum class Lasts { kForGood, kUntilPowerFails };
Status publish_file(const std::string& path, std::string_view text, Lasts lasts = Lasts::kForGood);

// All of the text, to an open file; errors (kEnvironment) name path and cause.
Status write_all(int descriptor, const std::string& path, std::string_view text);

bool is_regular_file(const std::string& path);

// Where files are shared, what one machine has written may be seen on others seconds later (NFS
// keeps what it knows of a folder). Reads the folder anew and looks, until it is seen or the time
// is over: false.
inline constexpr std::chrono::seconds kSeenWithin{10};
bool seen_within(std::chrono::milliseconds limit, const std::string& folder,
                 const std::function<bool()>& look);

// As read_file, but for a file that another machine has written: waits for it.
Result<std::string> await_file(const std::string& path, std::size_t most_bytes,
                               std::chrono::milliseconds limit = kSeenWithin);

// Absolute, without `.` and `..`; symbolic links stay as they are.
std::string absolute_path(const std::string& path);

// The nearest folder above the running program that holds `relative`, with it; "" when none does.
std::string installed_path(std::string_view relative);

}  // namespace ptrain
