#pragma once

#include <string_view>

namespace ptrain::report {

// The style sheet of a report, light and dark.
extern const std::string_view kStyle;

}  // namespace ptrain::report
