#include "launcher/report/html.h"

#include <fmt/format.h>

#include "launcher/base/printable.h"

namespace ptrain::report {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text, "\n\t")) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string element(std::string_view tag, std::string_view css, std::string_view inside) {
  const std::string attribute = css.empty() ? "" : fmt::format(" class=\"{}\"", escaped(css));
  return fmt::format("<{0}{1}>{2}</{0}>", tag, attribute, inside);
}

std::string section(std::string_view heading, std::string_view inside) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", escaped(heading), inside);
}

std::string note(std::string_view text) { return element("p", "note", escaped(text)) + "\n"; }

std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string inside;
  for (const auto& cell : head) inside += element("th", "", escaped(cell));
  inside = element("tr", "", inside) + "\n";
  for (const auto& row : rows) {
    std::string cells;
    for (const auto& cell : row) cells += element("td", "", escaped(cell));
    inside += element("tr", "", cells) + "\n";
  }
  return element("div", "wide", element("table", "", inside)) + "\n";
}

}  // namespace ptrain::report
