#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptrain::report {

// Text from anywhere, fit to stand in HTML: between tags and in quoted attributes.
std::string escaped(std::string_view text);

// <TAG class="CLASS">INSIDE</TAG>; `inside` is HTML already.
std::string element(std::string_view tag, std::string_view css, std::string_view inside);

// A section with its heading; `inside` is HTML already.
std::string section(std::string_view heading, std::string_view inside);

// A paragraph in small print; `text` is escaped here.
std::string note(std::string_view text);

// A table; all cells are escaped here.
std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows);

}  // namespace ptrain::report
