#pragma once

#include <string>
#include <string_view>

namespace ptrain {

// `text` with every control character as '?', or as a space where it is one, so that text from
// files, recipes and models cannot steer a terminal nor begin a line of its own. Those in `kept`
// stay. The two-byte controls U+0080 to U+009F of UTF-8 count.
std::string printable(std::string_view text, std::string_view kept = "");

}  // namespace ptrain
