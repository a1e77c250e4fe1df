#include "launcher/report/lines.h"

#include <cmath>
#include <limits>
#include <string_view>

#include "launcher/base/file.h"

namespace ptrain::report {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;
// Beyond it, differences of numbers that a chart takes would no longer be finite.
constexpr double kMostNumber = 1e300;

}  // namespace

Result<Lines> read_lines(const std::string& path) {
  Lines lines;
  if (!is_regular_file(path)) return lines;
  PTRAIN_TRY(const std::string text, read_file(path, kMostBytes));
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object())
      lines.objects.push_back(std::move(json));
    else
      ++lines.damaged;
  }
  return lines;
}

double number_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  const bool is_number = found != object.end() && found->is_number();
  const double value = is_number ? found->get<double>() : 0;
  const bool is_good = is_number && std::abs(value) < kMostNumber;
  return is_good ? value : std::numeric_limits<double>::quiet_NaN();
}

std::string text_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace ptrain::report
