#pragma once

#include <cstdint>
#include <string_view>

namespace ptrain::data {

// Where a text stops being UTF-8 (RFC 3629), in bytes; -1: nowhere.
std::int64_t first_not_utf8(std::string_view text);

}  // namespace ptrain::data
